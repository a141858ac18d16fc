package pdk_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"weir/abi"
)

// build compiles a plugin of testdata as plugins are built.
func build(t *testing.T, name string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), name+".wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out, "./testdata/"+name)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// module is an instance with a minimal host around it.
type module struct {
	t    *testing.T
	inst api.Module
	logs []string
}

func instantiate(t *testing.T, wasm []byte) *module {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	t.Cleanup(func() { rt.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	m := &module{t: t}
	_, err := rt.NewHostModuleBuilder(abi.ImportModule).NewFunctionBuilder().
		WithFunc(func(_ context.Context, inst api.Module, level int32, ptr, n uint32) {
			text, _ := inst.Memory().Read(ptr, n)
			m.logs = append(m.logs, string(text))
		}).Export(abi.ImportLog).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m.inst, err = rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// call does what a host does with the direct carrier.
func (m *module) call(hook abi.Hook, request string) (string, error) {
	m.t.Helper()
	ctx := context.Background()
	at, err := m.inst.ExportedFunction(abi.ExportAlloc).Call(ctx, uint64(len(request)))
	if err != nil {
		return "", err
	}
	if !m.inst.Memory().WriteString(uint32(at[0]), request) {
		m.t.Fatalf("weir_alloc answered %d", at[0])
	}
	packed, err := m.inst.ExportedFunction(string(hook)).Call(ctx, at[0], uint64(len(request)))
	if err != nil {
		return "", err
	}
	reply, ok := m.inst.Memory().Read(uint32(packed[0]>>32), uint32(packed[0]))
	if !ok {
		m.t.Fatalf("%s: reply out of range: %x", hook, packed[0])
	}
	return string(reply), nil
}

func TestModuleExportsExactlyItsHooks(t *testing.T) {
	wasm := build(t, "noshouting")
	t.Logf("%d bytes", len(wasm))
	if len(wasm) > 2<<20 {
		t.Errorf("a plugin without fmt, regexp and encoding/json has %d bytes, expected at most 2 MiB", len(wasm))
	}
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer rt.Close(ctx)
	compiled, err := rt.CompileModule(ctx, wasm)
	if err != nil {
		t.Fatal(err)
	}
	var exports []string
	for name := range compiled.ExportedFunctions() {
		exports = append(exports, name)
	}
	for name := range compiled.ExportedMemories() {
		exports = append(exports, name)
	}
	slices.Sort(exports)
	want := []string{"_initialize", "check_input", "configure", "describe", "memory", "weir_abi_1", "weir_alloc"}
	if !slices.Equal(exports, want) {
		t.Errorf("exports %q, want %q", exports, want)
	}
	for _, f := range compiled.ImportedFunctions() {
		mod, name, _ := f.Import()
		if mod != abi.ImportWASI && (mod != abi.ImportModule || name != abi.ImportLog) {
			t.Errorf("imports %s.%s", mod, name)
		}
	}
}

func TestModuleAnswers(t *testing.T) {
	m := instantiate(t, build(t, "noshouting"))
	for _, tt := range []struct {
		hook          abi.Hook
		request, want string
	}{
		{abi.HookDescribe, `{"now":0,"seed":"0"}`, `{"name":"no-shouting","version":"1.0.0","abi":1,"kind":"guardrail"}`},
		{abi.HookConfigure, `{"now":0,"seed":"0","config":{}}`, `{}`},
		{abi.HookCheckInput, `{"now":0,"seed":"0","text":"HELP","history":[]}`, `{"verdict":"block","message":"Please write in lower case."}`},
		{abi.HookCheckInput, `{"now":0,"seed":"0","text":"help","history":[]}`, `{"verdict":"allow"}`},
		{abi.HookCheckInput, `{"now":0,"seed":"0","text":"` + strings.Repeat("x", 1<<20) + `","history":[]}`, `{"verdict":"allow"}`},
	} {
		got, err := m.call(tt.hook, tt.request)
		if err != nil || got != tt.want {
			t.Errorf("%s = %s, %v; want %s", tt.hook, got, err, tt.want)
		}
	}
}

func TestFailureIsLoggedAndTraps(t *testing.T) {
	m := instantiate(t, build(t, "noshouting"))
	_, err := m.call(abi.HookCheckInput, `{"now":0,"seed":"0","text":"help"}`)
	if err == nil || !strings.Contains(err.Error(), "unreachable") {
		t.Errorf("error = %v, want a trap by unreachable", err)
	}
	if want := []string{`check_input: read the request: missing field "history"`}; !slices.Equal(m.logs, want) {
		t.Errorf("logs %q, want %q", m.logs, want)
	}
}
