package plugin

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"weir/host/plugin/instrument"
)

// rewritten is what a module is compiled from, and what newCode has to know of
// it. Its fields are the layout of the entries below.
type rewritten struct {
	wasm       []byte
	globals    []string
	resettable bool
}

// keepLayout changes with the fields of rewritten and how they are written.
const keepLayout = 1

// keepFolder is in the cache's directory, beside what wazero keeps there.
const keepFolder = "weir-instrumented"

// keeper keeps rewritten modules between starts, so that a start does not
// rewrite what an earlier one did. Its files are trusted like the compiled code
// in the same directory, by who may write there: whoever can replace an entry
// can replace machine code. The sum in an entry finds what broke by accident;
// such an entry counts as none and is written again. Refusals are not kept.
//
//	entry: SHA-256 of the rest │ key │ resettable │ globals │ wasm
type keeper struct{ dir string } // empty: keeps nothing

// keepKey names everything that a rewritten module depends on. It stands in the
// entry, too, so that an entry under another's name is none.
func keepKey(digest, carrier string, o instrument.Options) string {
	return fmt.Sprintf("layout %d, instrumenter %s, carrier %s, module %s, limits %d %d %d",
		keepLayout, instrument.Version, carrier, digest, o.MaxModule, o.MaxMemory, o.MaxTable)
}

func (k keeper) path(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(k.dir, keepFolder, hex.EncodeToString(sum[:]))
}

// get returns what was kept; whatever is wrong with it, there is none then.
func (k keeper) get(key string) (*rewritten, bool) {
	if k.dir == "" {
		return nil, false
	}
	data, err := os.ReadFile(k.path(key))
	if err != nil {
		return nil, false
	}
	return decodeKept(key, data)
}

// put writes an entry whole or not at all.
func (k keeper) put(key string, m *rewritten) error {
	if k.dir == "" {
		return nil
	}
	path := k.path(key)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(appendKept(nil, key, m))
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func appendKept(b []byte, key string, m *rewritten) []byte {
	begin := len(b)
	b = append(b, make([]byte, sha256.Size)...)
	b = appendText(b, key)
	resettable := byte(0)
	if m.resettable {
		resettable = 1
	}
	b = binary.AppendUvarint(append(b, resettable), uint64(len(m.globals)))
	for _, name := range m.globals {
		b = appendText(b, name)
	}
	b = append(b, m.wasm...)
	sum := sha256.Sum256(b[begin+sha256.Size:])
	copy(b[begin:], sum[:])
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decodeKept returns a module that aliases data.
func decodeKept(key string, data []byte) (*rewritten, bool) {
	if len(data) < sha256.Size {
		return nil, false
	}
	sum := sha256.Sum256(data[sha256.Size:])
	if !bytes.Equal(sum[:], data[:sha256.Size]) {
		return nil, false
	}
	d := keptReader{data: data[sha256.Size:]}
	if d.text() != key {
		return nil, false
	}
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

func (d *keptReader) text() string {
	n := d.number()
	if n > uint64(len(d.data)) {
		d.bad = true
		return ""
	}
	s := string(d.data[:n])
	d.data = d.data[n:]
	return s
}
