package instrument

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"weir/host/fault"
	"weir/host/plugin/plugintest"
)

// FuzzRewrite feeds arbitrary files. Nothing panics; what is accepted compiles
// rewritten if and only if it does as it is, is refused the second time, and is
// rewritten to the same bytes when it is done again.
func FuzzRewrite(f *testing.F) {
	for _, wasm := range seeds(f) {
		f.Add(wasm)
	}
	// The interpreter validates like the compiler, and does not generate code.
	engine := wazero.NewRuntimeWithConfig(f.Context(), wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		opts := Options{Allow: anyImport, linked: true}
		m, err := Rewrite(wasm, opts)
		if err != nil {
			if m != nil || fault.Of(err) != fault.Invalid || len(err.Error()) > 1000 {
				t.Fatalf("refused with %v: %v", fault.Of(err), err)
			}
			return
		}
		plain, rewritten, bare := compiles(t.Context(), engine, withoutCustom(wasm)), compiles(t.Context(), engine, m.Wasm), compiles(t.Context(), engine, m.Bare())
		if (plain == nil) != (rewritten == nil) || plain == nil && bare != nil {
			t.Fatalf("compiles as it is: %v; rewritten: %v; bare: %v", plain, rewritten, bare)
		}
		if again, err := Rewrite(wasm, opts); err != nil || !bytes.Equal(again.Wasm, m.Wasm) {
			t.Fatal("is rewritten to other bytes the second time")
		}
		if _, err := Rewrite(m.Wasm, opts); err == nil {
			t.Fatal("is rewritten twice")
		}
	})
}

// withoutCustom leaves out what the rewriter does: the engine refuses modules
// for the contents of a custom section, which the specification does not.
func withoutCustom(wasm []byte) []byte {
	r := &reader{data: wasm, at: 8}
	b := bytes.Clone(wasm[:8])
	for !r.done() {
		id := r.byte()
		s := r.sub(r.u32())
		if id != sectionCustom {
			b = appendSized(append(b, id), s.data[s.at:])
		}
	}
	return b
}

func compiles(ctx context.Context, engine wazero.Runtime, wasm []byte) error {
	m, err := engine.CompileModule(ctx, wasm)
	if err == nil {
		_ = m.Close(ctx)
	}
	return err
}

// seeds are some of the specification's modules, random programs and a guest.
func seeds(f *testing.F) (list [][]byte) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		f.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "internal", "integration_test", "spectest", "*", "testdata", "*.wasm"))
	if err != nil || len(files) < 5000 {
		f.Fatalf("found %d modules of the specification: %v", len(files), err)
	}
	for i := 0; i < len(files); i += 17 {
		wasm, err := os.ReadFile(files[i])
		if err != nil {
			f.Fatal(err)
		}
		if len(wasm) < 4096 {
			list = append(list, wasm)
		}
	}
	for seed := range uint64(5) {
		list = append(list, newProgram(seed).bytes())
	}
	return append(list, plugintest.NewGuest().Build(), oneInstruction(opTableSize, immTable))
}
