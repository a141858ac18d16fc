package plugin_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"weir/abi"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

// FAULTS P15: an entry that is corrupt, cut, of another version or of no use
// counts as none, and the same start writes a sound one.
func TestKeptModule(t *testing.T) {
	for carrier, wasm := range map[string][]byte{
		plugin.CarrierDirect: keeper(),
		plugin.CarrierExtism: NewExtismGuest().Answer(abi.HookCheckInput, allow).Build(),
	} {
		t.Run(carrier, func(t *testing.T) { testKept(t, carrier, wasm) })
	}
}

func testKept(t *testing.T, carrier string, wasm []byte) {
	dir := t.TempDir()
	sum := sha256.Sum256(wasm)
	digest := hex.EncodeToString(sum[:])
	loadOnce := func() {
		t.Helper()
		out := new(lines)
		p, err := newRuntimeWith(t, plugin.RuntimeOptions{CacheDir: dir, Logger: out.logger()}).Load(context.Background(),
			plugin.Spec{Name: "x", Wasm: wasm, Limits: plugin.Limits{Instances: 1}})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // with the globals that the entry names, the second finds nothing
			err = plugin.CallDecoding(p, context.Background(), abi.HookCheckInput, []byte("a secret of the caller"), func(reply []byte) error {
				if bytes.Contains(reply, []byte("secret")) || bytes.Contains(reply, []byte("a se")) {
					t.Errorf("the call found %q", reply)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if text := out.String(); text != "" {
			t.Errorf("log: %s", text)
		}
	}
	loadOnce()
	ok, file := plugin.Kept(dir, digest, carrier)
	if !ok {
		t.Fatal("nothing was kept")
	}
	sound, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	loadOnce() // from the entry
	for name, bad := range map[string][]byte{
		"empty":        {},
		"the sum only": sound[:sha256.Size],
		"cut":          sound[:len(sound)-1],
		"longer":       append(bytes.Clone(sound), 0),
		"a bit of it":  flipped(sound, len(sound)-1),
		"of its sum":   flipped(sound, 3),
		"of its key":   flipped(sound, sha256.Size+12),
		"version":      plugin.ForeignEntry("1"),
		"no code":      plugin.UncompilableEntry(digest, carrier),
	} {
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		loadOnce()
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, sound) {
			t.Errorf("%s: the entry was not written again: %d bytes, %v", name, len(got), err)
		}
	}
	if names, err := os.ReadDir(plugin.KeepFolder(dir)); err != nil || len(names) != 1 {
		t.Errorf("the folder holds %v, %v", names, err)
	}
}

func flipped(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 1
	return b
}

// What is refused, by the host or by the engine, is refused by every start for
// the same reason, and leaves nothing behind.
func TestRefusalsAreNotKept(t *testing.T) {
	dir, first := t.TempDir(), map[string]string{}
	for range 2 {
		for name, wasm := range map[string][]byte{
			"instrument": checker().Replace("f", "", "", []byte{0xff}).Build(),
			"engine":     checker().Replace("check_output", "ii", "l").Build(),
		} {
			_, err := newRuntimeWith(t, plugin.RuntimeOptions{CacheDir: dir}).Load(context.Background(), plugin.Spec{Name: "x", Wasm: wasm})
			if err == nil || first[name] != "" && first[name] != err.Error() {
				t.Fatalf("%s: %v, first %s", name, err, first[name])
			}
			first[name] = err.Error()
		}
	}
	if names, _ := filepath.Glob(filepath.Join(plugin.KeepFolder(dir), "*")); len(names) > 0 {
		t.Errorf("kept: %v", names)
	}
}

// A directory that takes no entry costs time, not the start.
func TestKeepFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(plugin.KeepFolder(dir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out := new(lines)
	_, err := newRuntimeWith(t, plugin.RuntimeOptions{CacheDir: dir, Logger: out.logger()}).Load(context.Background(),
		plugin.Spec{Name: "x", Wasm: checker().Build()})
	if err != nil || !bytes.Contains([]byte(out.String()), []byte("an instrumented module is not kept")) {
		t.Errorf("%v, log %q", err, out.String())
	}
}

// Whatever stands behind a right sum is read without a panic, and what is read
// is written the same way.
func FuzzKept(f *testing.F) {
	f.Add([]byte("\x03key\x01\x01\x01gwasm"))
	f.Add([]byte("\x03key\x00\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, rest []byte) {
		sum := sha256.Sum256(rest)
		again, ok := plugin.DecodeKept("key", append(sum[:], rest...))
		if !ok {
			return
		}
		if more, ok := plugin.DecodeKept("key", again); !ok || !bytes.Equal(more, again) {
			t.Errorf("%q became %q, then %q", rest, again, more)
		}
	})
}
