package plugin

import "path/filepath"

// KeepFolder is where a runtime keeps instrumented modules.
func KeepFolder(cache string) string { return filepath.Join(cache, keepFolder) }

// Kept tells what a keeper finds under the key of a module, and the entry's file.
func Kept(cache, digest, carrier string) (ok bool, file string) {
	k, key := keeper{dir: cache}, keepKey(digest, carrier, rewriteOptions())
	_, ok = k.get(key)
	return ok, k.path(key)
}

// ForeignEntry is a whole and sound entry that another version has written.
func ForeignEntry(version string) []byte {
	return appendKept(nil, "layout 1, instrumenter "+version, &rewritten{wasm: []byte("\x00asm\x01\x00\x00\x00")})
}

// UncompilableEntry is a sound entry for a module, of code that no engine takes.
func UncompilableEntry(digest, carrier string) []byte {
	return appendKept(nil, keepKey(digest, carrier, rewriteOptions()), &rewritten{wasm: []byte("no code")})
}

// DecodeKept reads an entry and writes it again.
func DecodeKept(key string, data []byte) ([]byte, bool) {
	m, ok := decodeKept(key, data)
	if !ok {
		return nil, false
	}
	return appendKept(nil, key, m), true
}
