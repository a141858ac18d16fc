package plugin

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"weir/host/plugin/instrument"
)

// keeper keeps between starts what an earlier start has made. Its files are
// trusted like the compiled code in the same directory, by who may write there:
// whoever can replace an entry can replace machine code. The sum in an entry
// finds what broke by accident; such an entry counts as none and is written
// again.
//
//	entry: SHA-256 of the rest │ key │ content
type keeper struct {
	dir  string // empty: keeps nothing
	most int64  // bytes; what was used longest ago goes first
}

// The folders of a cache's directory, beside what wazero keeps there, and how
// much each may hold: some dozens of Go plugins, or of their versions.
const (
	moduleFolder = "weir-instrumented"
	imageFolder  = "weir-images"
	keptMost     = 512 << 20
)

func newKeeper(cache, folder string) keeper {
	if cache == "" {
		return keeper{}
	}
	return keeper{dir: filepath.Join(cache, folder), most: keptMost}
}

func (k keeper) path(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(k.dir, hex.EncodeToString(sum[:]))
}

// get returns the content of an entry; whatever is wrong with it, there is none
// then.
func (k keeper) get(key string) ([]byte, bool) {
	if k.dir == "" {
		return nil, false
	}
	path := k.path(key)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	content, ok := openEntry(key, data)
	if ok { // or it would be the first to go
		touch(path)
	}
	return content, ok
}

// put writes an entry whole or not at all.
func (k keeper) put(key string, content []byte) error {
	if k.dir == "" {
		return nil
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(k.dir, "new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(sealEntry(key, content))
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		touch(f.Name())
		err = os.Rename(f.Name(), k.path(key))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	k.trim(k.path(key))
	return nil
}

// touch notes a use to the nanosecond; file systems by themselves note it to
// some milliseconds.
func touch(path string) {
	now := time.Now()
	_ = os.Chtimes(path, now, now)
}

// trim removes what was used longest ago, and what a start has left half
// written, until the rest is within bounds; newest stays. Two processes may
// trim at the same time: an entry that is gone is made again.
func (k keeper) trim(newest string) {
	list, err := os.ReadDir(k.dir)
	if err != nil {
		return
	}
	var files []os.FileInfo
	size := int64(0)
	for _, e := range list {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files, size = append(files, info), size+info.Size()
		}
	}
	slices.SortFunc(files, func(a, b os.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, f := range files {
		if path := filepath.Join(k.dir, f.Name()); size > k.most && path != newest && os.Remove(path) == nil {
			size -= f.Size()
		}
	}
}

// sealEntry and openEntry write and read an entry. The key stands in it, so that
// one under another's name is none.
func sealEntry(key string, content []byte) []byte {
	b := make([]byte, sha256.Size, sha256.Size+binary.MaxVarintLen64+len(key)+len(content))
	b = append(appendText(b, key), content...)
	sum := sha256.Sum256(b[sha256.Size:])
	copy(b, sum[:])
	return b
}

// openEntry returns content that aliases data.
func openEntry(key string, data []byte) (content []byte, ok bool) {
	if len(data) < sha256.Size {
		return nil, false
	}
	sum := sha256.Sum256(data[sha256.Size:])
	if !bytes.Equal(sum[:], data[:sha256.Size]) {
		return nil, false
	}
	d := keptReader{data: data[sha256.Size:]}
	ok = d.text() == key && !d.bad
	return d.data, ok
}

// rewritten is what a module is compiled from, and what newCode has to know of
// it.
type rewritten struct {
	wasm       []byte
	globals    []string
	resettable bool
}

// keepLayout changes with the fields of rewritten and how they are written.
const keepLayout = 2

// keepKey names everything that a rewritten module depends on. Refusals are not
// kept.
func keepKey(digest, carrier string, o instrument.Options) string {
	return fmt.Sprintf("layout %d, instrumenter %s, carrier %s, module %s, limits %d %d %d",
		keepLayout, instrument.Version, carrier, digest, o.MaxModule, o.MaxMemory, o.MaxTable)
}

// content: resettable │ globals │ wasm
func (m *rewritten) append(b []byte) []byte {
	resettable := byte(0)
	if m.resettable {
		resettable = 1
	}
	b = binary.AppendUvarint(append(b, resettable), uint64(len(m.globals)))
	for _, name := range m.globals {
		b = appendText(b, name)
	}
	return append(b, m.wasm...)
}

// readRewritten returns a module that aliases content.
func readRewritten(content []byte) (*rewritten, bool) {
	d := keptReader{data: content}
	m := &rewritten{resettable: d.number() == 1}
	for n := d.number(); n > 0 && !d.bad; n-- {
		m.globals = append(m.globals, d.text())
	}
	m.wasm = d.data
	return m, !d.bad
}

// keptReader reads an entry; bad stays once it is set.
type keptReader struct {
	data []byte
	bad  bool
}

func (d *keptReader) number() uint64 {
	v, n := binary.Uvarint(d.data)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.data = d.data[n:]
	return v
}

// bytes returns the next n bytes as they lie there.
func (d *keptReader) bytes(n uint64) []byte {
	if d.bad || n > uint64(len(d.data)) {
		d.bad = true
		return nil
	}
	b := d.data[:n]
	d.data = d.data[n:]
	return b
}

func (d *keptReader) text() string { return string(d.bytes(d.number())) }

func appendText[T ~string | ~[]byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
