package plugin

import "path/filepath"

// KeepFolder is where a runtime keeps instrumented modules.
func KeepFolder(cache string) string { return filepath.Join(cache, moduleFolder) }

// Kept tells what a keeper finds under the key of a module, and the entry's file.
func Kept(cache, digest, carrier string) (ok bool, file string) {
	k, key := newKeeper(cache, moduleFolder), keepKey(digest, carrier, rewriteOptions())
	_, ok = k.get(key)
	return ok, k.path(key)
}

// ForeignEntry is a whole and sound entry that another version has written.
func ForeignEntry(version string) []byte {
	return sealEntry("layout 1, instrumenter "+version, (&rewritten{wasm: []byte("\x00asm\x01\x00\x00\x00")}).append(nil))
}

// UncompilableEntry is a sound entry for a module, of code that no engine takes.
func UncompilableEntry(digest, carrier string) []byte {
	return sealEntry(keepKey(digest, carrier, rewriteOptions()), (&rewritten{wasm: []byte("no code")}).append(nil))
}

// DecodeKept reads an entry and writes it again.
func DecodeKept(key string, data []byte) ([]byte, bool) {
	content, ok := openEntry(key, data)
	if !ok {
		return nil, false
	}
	m, ok := readRewritten(content)
	if !ok {
		return nil, false
	}
	return sealEntry(key, m.append(nil)), true
}

// ImageFolder is where a runtime keeps images.
func ImageFolder(cache string) string { return filepath.Join(cache, imageFolder) }

// Made counts the introductions that a runtime has made, and not recalled.
func Made(r *Runtime) int64 { return r.made.Load() }

// KeptImage is what is kept of a plugin, and its file.
func KeptImage(p *Plugin) (content []byte, file string) {
	content, _ = p.runtime.images.get(p.introductionKey())
	return content, p.runtime.images.path(p.introductionKey())
}

// SealedImage is a sound entry of a plugin with other content.
func SealedImage(p *Plugin, content []byte) []byte { return sealEntry(p.introductionKey(), content) }

// Content is what a plugin's introduction would be kept as.
func Content(p *Plugin) []byte {
	k := keptIntroduction{p.intro.description, p.intro.settings, p.intro.image.globals, p.intro.image.memory.bytes()}
	return k.append(nil)
}

// SmallContent is the same with a memory of one blank page.
func SmallContent(p *Plugin) []byte {
	k := keptIntroduction{p.intro.description, p.intro.settings, p.intro.image.globals, make([]byte, pageSize)}
	return k.append(nil)
}

// ReadContent reads the content of an entry and writes it again.
func ReadContent(content []byte) ([]byte, bool) {
	k, ok := readIntroduction(content, 1<<20)
	if !ok {
		return nil, false
	}
	return k.append(nil), true
}

// Keep puts entries into a keeper of a folder that may hold so much, and tells
// which of their keys it has at the end. One that is used is got before each put.
func Keep(dir string, most int64, used string, keys ...string) (left []string) {
	k := keeper{dir: dir, most: most}
	for _, key := range keys {
		k.get(used)
		if err := k.put(key, make([]byte, 1000)); err != nil {
			panic(err)
		}
	}
	for _, key := range keys {
		if _, ok := k.get(key); ok {
			left = append(left, key)
		}
	}
	return left
}
