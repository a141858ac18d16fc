package plugin_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/abi"
	"weir/host/plugin"
	. "weir/host/plugin/plugintest"
)

// recalling loads a plugin by a runtime of its own, and tells whether its image
// was recalled.
func recalling(t testing.TB, dir string, spec plugin.Spec) (p *plugin.Plugin, recalled bool) {
	t.Helper()
	r := newRuntimeWith(t, plugin.RuntimeOptions{CacheDir: dir})
	spec.Name = "x"
	p, err := r.Load(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return p, plugin.Made(r) == 0
}

// An image that is recalled is the one that would be made, byte by byte, for a
// Go guest with configuration and prompts; calls on it answer alike and begin
// with fresh state.
func TestRecalledImageIsTheMadeOne(t *testing.T) {
	dir := t.TempDir()
	spec := plugin.Spec{Wasm: Build(t, "host/plugin/testdata/probe"), Config: abi.Raw(`{"a":1}`),
		Prompts: []abi.Prompt{{Name: "p", Text: "words"}}, Limits: plugin.Limits{Instances: 1}}
	made, recalled := recalling(t, dir, spec)
	if recalled {
		t.Fatal("recalled from an empty directory")
	}
	again, recalled := recalling(t, dir, spec)
	if !recalled {
		t.Fatal("not recalled")
	}
	if !bytes.Equal(plugin.Content(made), plugin.Content(again)) {
		t.Error("what is recalled differs from what was made")
	}
	for _, p := range []*plugin.Plugin{made, again} {
		if got, err := probe(t, p, abi.Call{Now: 1, Seed: "1"}, "config"); err != nil || got != `{"a":1}|p=words` {
			t.Errorf("config %q, %v", got, err)
		}
		first := ""
		for n := range 20 {
			found, err := probe(t, p, abi.Call{Now: 1, Seed: "1"}, "keep "+secretOf(n))
			if n == 0 {
				first = found
			}
			if err != nil || found != first {
				t.Fatalf("call %d found %q, the first %q, %v", n, found, first, err)
			}
			if left := plugin.Residue(p, secretOf(n)); left != "" {
				t.Fatal(left)
			}
		}
	}
}

// Whatever an image depends on makes it another one.
func TestImageIsRecalledForTheSameOnly(t *testing.T) {
	dir := t.TempDir()
	wasm := Build(t, "host/plugin/testdata/probe")
	prompt := func(text string) []abi.Prompt { return []abi.Prompt{{Name: "p", Text: text}} }
	for name, spec := range map[string]plugin.Spec{
		"plain":          {Wasm: wasm},
		"configuration":  {Wasm: wasm, Config: abi.Raw(`{"a":1}`)},
		"prompt":         {Wasm: wasm, Prompts: prompt("one")},
		"another prompt": {Wasm: wasm, Prompts: prompt("two")},
		"memory":         {Wasm: wasm, Limits: plugin.Limits{Memory: 32 << 20}},
		"fuel":           {Wasm: wasm, Limits: plugin.Limits{Fuel: 1e9}},
		"module":         {Wasm: Build(t, "host/plugin/testdata/echo")},
	} {
		if _, recalled := recalling(t, dir, spec); recalled {
			t.Errorf("%s: the image of another is recalled", name)
		}
		if _, recalled := recalling(t, dir, spec); !recalled { // the control
			t.Errorf("%s: not recalled", name)
		}
	}
}

// FAULTS P15: an entry that is corrupt or of no use counts as none, and the same
// start writes a sound one.
func TestCorruptImage(t *testing.T) {
	dir := t.TempDir()
	spec := plugin.Spec{Wasm: keeper(), Limits: plugin.Limits{Instances: 1}}
	p, _ := recalling(t, dir, spec)
	content, file := plugin.KeptImage(p)
	sound, err := os.ReadFile(file)
	if err != nil || len(content) == 0 {
		t.Fatal("nothing is kept: ", err)
	}
	blocks := 8 * 16 // of the guest's 8 pages
	pages := bytes.LastIndexByte(content[:len(content)-blocks], 0x20)
	if pages < 0 || !bytes.Equal(content[pages-2:pages+1], []byte{0x80, 0x80, 0x20}) {
		t.Fatalf("the size of the memory is not where it was: %x", content[:200])
	}
	sealed := func(change func(b []byte) []byte) []byte {
		return plugin.SealedImage(p, change(bytes.Clone(content)))
	}
	for name, bad := range map[string][]byte{
		"empty":                           {},
		"cut":                             sound[:len(sound)-1],
		"a bit":                           flipped(sound, len(sound)-1),
		"of the sum":                      flipped(sound, 1),
		"of the key":                      flipped(sound, 40),
		"sealed, empty":                   sealed(func([]byte) []byte { return nil }),
		"sealed, cut":                     sealed(func(b []byte) []byte { return b[:len(b)-1] }),
		"sealed, longer":                  sealed(func(b []byte) []byte { return append(b, 0) }),
		"a memory of more than the limit": sealed(func(b []byte) []byte { b[pages] = 0x7f; return b }),
		"a block that is neither":         sealed(func(b []byte) []byte { b[pages+1] = 2; return b }),
		"no description":                  sealed(func(b []byte) []byte { b[2] = '['; return b }),
	} {
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, recalled := recalling(t, dir, spec); recalled {
			t.Errorf("%s: it is recalled", name)
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, sound) {
			t.Errorf("%s: the entry was not written again: %d bytes, %v", name, len(got), err)
		}
	}
	if _, recalled := recalling(t, dir, spec); !recalled { // the control
		t.Error("the sound entry is not recalled")
	}
}

// What was not warmed is not kept: it may be an accident of this start. Nor are
// images of modules that have none.
func TestImagesThatAreNotKept(t *testing.T) {
	for name, wasm := range map[string][]byte{
		"dies of being warmed": NewGuest().Hook(abi.HookCheckInput, Op(OpUnreachable)).Build(),
		"other state": func() []byte {
			g := NewGuest()
			g.Table(1, 1)
			g.Global()
			ok := g.Reply(allow)
			return g.Hook(abi.HookCheckInput, I32(0), Op(0xd0, 0x70), Op(0x26, 0), ok).Build() // ref.null func, table.set
		}(),
	} {
		dir := t.TempDir()
		for range 2 {
			if _, recalled := recalling(t, dir, plugin.Spec{Wasm: wasm}); recalled {
				t.Errorf("%s: recalled", name)
			}
		}
		if files, _ := filepath.Glob(filepath.Join(plugin.ImageFolder(dir), "*")); len(files) > 0 {
			t.Errorf("%s: kept", name)
		}
	}
}

// A folder of entries has a bound: what was used longest ago goes first, an
// entry in use and the newest stay, and so nothing is left of a start that died
// while it wrote.
func TestKeeperIsBounded(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "new-123")
	if err := os.WriteFile(old, make([]byte, 1500), 0o600); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	if left := plugin.Keep(dir, 3500, "a", "a", "b", "c", "d", "e"); !slices.Equal(left, []string{"a", "d", "e"}) {
		t.Errorf("left: %v", left)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("a file that was never finished is still there")
	}
	if left := plugin.Keep(t.TempDir(), 10, "", "a", "b"); !slices.Equal(left, []string{"b"}) {
		t.Errorf("left of those that are too large: %v", left)
	}
	if left := plugin.Keep(t.TempDir(), 1<<20, "", "a", "b"); strings.Join(left, "") != "ab" { // the control
		t.Errorf("left of those that have room: %v", left)
	}
}

// Whatever stands behind a right sum is read without a panic, and what is read
// is written the same way.
func FuzzKeptImage(f *testing.F) {
	p, _ := recalling(f, f.TempDir(), plugin.Spec{Wasm: keeper()})
	f.Add(plugin.SmallContent(p))
	f.Fuzz(func(t *testing.T, content []byte) {
		again, ok := plugin.ReadContent(content)
		if !ok {
			return
		}
		if more, ok := plugin.ReadContent(again); !ok || !bytes.Equal(more, again) {
			t.Errorf("%q became %q, then %q", content, again, more)
		}
	})
}
