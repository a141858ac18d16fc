package pdk_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"weir/abi"
)

// Modules are built and compiled once for all tests.
var (
	built    sync.Map
	compiled = wazero.NewCompilationCache()
)

// build compiles a plugin of testdata once, as plugins are built.
func build(t testing.TB, name string) []byte {
	t.Helper()
	if raceDetector {
		t.Skip("modules are tested without the race detector")
	}
	once, _ := built.LoadOrStore(name, sync.OnceValues(func() ([]byte, error) {
		dir, err := os.MkdirTemp("", "weir-pdk-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		out := filepath.Join(dir, name+".wasm")
		cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out, "./testdata/"+name)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		if text, err := cmd.CombinedOutput(); err != nil {
			return nil, errors.New(err.Error() + "\n" + string(text))
		}
		return os.ReadFile(out)
	}))
	wasm, err := once.(func() ([]byte, error))()
	if err != nil {
		t.Fatalf("go build: %v", err)
	}
	return wasm
}

// module is an instance with a minimal host around it.
type module struct {
	t    testing.TB
	inst api.Module
	fns  map[string]api.Function // each look-up makes a stack of 10 KiB
	logs []string

	stderr bytes.Buffer
}

func instantiate(t testing.TB, name string) *module {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(compiled))
	t.Cleanup(func() { rt.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	m := &module{t: t, fns: map[string]api.Function{}}
	_, err := rt.NewHostModuleBuilder(abi.ImportModule).NewFunctionBuilder().
		WithFunc(func(_ context.Context, inst api.Module, level int32, ptr, n uint32) {
			text, _ := inst.Memory().Read(ptr, n)
			m.logs = append(m.logs, string(text))
		}).Export(abi.ImportLog).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m.inst, err = rt.InstantiateWithConfig(ctx, build(t, name), wazero.NewModuleConfig().WithStartFunctions("_initialize").WithStderr(&m.stderr))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *module) fn(name string) api.Function {
	if m.fns[name] == nil {
		m.fns[name] = m.inst.ExportedFunction(name)
	}
	return m.fns[name]
}

// call does what a host does with the direct carrier.
func (m *module) call(hook abi.Hook, request string) (string, error) {
	m.t.Helper()
	ctx := context.Background()
	at, err := m.fn(abi.ExportAlloc).Call(ctx, uint64(len(request)))
	if err != nil {
		return "", err
	}
	if !m.inst.Memory().WriteString(uint32(at[0]), request) {
		m.t.Fatalf("weir_alloc answered %d", at[0])
	}
	packed, err := m.fn(string(hook)).Call(ctx, at[0], uint64(len(request)))
	if err != nil {
		return "", err
	}
	reply, ok := m.inst.Memory().Read(uint32(packed[0]>>32), uint32(packed[0]))
	if !ok {
		m.t.Fatalf("%s: reply out of range: %x", hook, packed[0])
	}
	return string(reply), nil
}

// exchange is one call and its reply.
type exchange struct {
	hook          abi.Hook
	request, want string
}

func (m *module) expect(list ...exchange) {
	m.t.Helper()
	for _, e := range list {
		got, err := m.call(e.hook, e.request)
		if err != nil || got != e.want {
			m.t.Errorf("%s(%.80s) = %s, %v; want %s", e.hook, e.request, got, err, e.want)
			continue
		}
		if err := abi.ValidateReply(e.hook, []byte(e.request), []byte(got)); err != nil {
			m.t.Errorf("%s(%.80s): the host would refuse: %v", e.hook, e.request, err)
		}
	}
}

func TestModuleExportsExactlyItsHooks(t *testing.T) {
	for name, hooks := range map[string][]string{
		"noshouting": {"check_input"},
		"everycheck": {"check_input", "check_output", "check_tool_call", "check_tool_result"},
		"workflow":   {"step"},
	} {
		t.Run(name, func(t *testing.T) {
			wasm := build(t, name)
			t.Logf("%d bytes", len(wasm))
			if most := 9 << 18; len(wasm) > most { // the Go runtime alone is 1.8 MB
				t.Errorf("without fmt, regexp and encoding/json it has %d bytes, expected at most %d", len(wasm), most)
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
			want := append([]string{"_initialize", "configure", "describe", "memory", "weir_abi_1", "weir_alloc"}, hooks...)
			slices.Sort(exports)
			slices.Sort(want)
			if !slices.Equal(exports, want) {
				t.Errorf("exports %q, want %q", exports, want)
			}
			if n, err := abi.VersionOf(exports); n != abi.Version || err != nil {
				t.Errorf("VersionOf = %d, %v", n, err)
			}
			for _, f := range compiled.ImportedFunctions() {
				mod, name, _ := f.Import()
				if mod != abi.ImportWASI && (mod != abi.ImportModule || name != abi.ImportLog) {
					t.Errorf("imports %s.%s", mod, name)
				}
			}
		})
	}
}

func TestFirstGuardrail(t *testing.T) {
	instantiate(t, "noshouting").expect(
		exchange{abi.HookDescribe, `{"now":0,"seed":"0"}`, `{"name":"no-shouting","version":"1.0.0","abi":1,"kind":"guardrail"}`},
		exchange{abi.HookConfigure, `{"now":0,"seed":"0","config":{}}`, `{}`},
		exchange{abi.HookConfigure, `{"now":0,"seed":"0","config":{"any":1}}`, `{"error":"expected no configuration: offset 1: unknown field \"any\""}`},
		exchange{abi.HookCheckInput, `{"now":0,"seed":"0","text":"HELP","history":[]}`, `{"verdict":"block","message":"Please write in lower case."}`},
		exchange{abi.HookCheckInput, `{"now":0,"seed":"0","text":"help","history":[]}`, `{"verdict":"allow"}`},
	)
}

// Requests and replies of any length, one after the other on one instance.
func TestEveryCheck(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	m := instantiate(t, "everycheck")
	m.expect(
		exchange{abi.HookDescribe, `{"now":0,"seed":"0"}`, `{"name":"everycheck","version":"0.1.0","abi":1,"kind":"guardrail"}`},
		exchange{abi.HookConfigure, `{"now":0,"seed":"0","config":{"wort":"hey"}}`, `{"error":"offset 1: unknown field \"wort\""}`},
		exchange{abi.HookConfigure, `{"now":0,"seed":"0","config":{"word":"hey"}}`, `{"look_behind":3}`},
		exchange{abi.HookCheckInput, `{"now":0,"seed":"0","text":"you","history":[]}`, `{"verdict":"block","message":"hey you"}`},
		exchange{abi.HookCheckInput, `{"now":0,"seed":"0","text":"` + long + `","history":[]}`, `{"verdict":"block","message":"hey ` + long + `"}`},
		exchange{abi.HookCheckInput, `{"now":0,"seed":"0","text":"u","history":[]}`, `{"verdict":"block","message":"hey u"}`},
		exchange{abi.HookCheckOutput, `{"now":0,"seed":"0","stream_pos":7,"text":"é","state":{"a": [1]}}`, `{"hold_from":2,"state":{"a": [1]}}`},
		exchange{abi.HookCheckToolCall, `{"now":0,"seed":"0","tool":"t","arguments":{},"read_only":true,"text":""}`, `{"verdict":"allow"}`},
		exchange{abi.HookCheckToolCall, `{"now":0,"seed":"0","tool":"t","arguments":{},"read_only":false,"text":""}`, `{"verdict":"require_approval","reason_code":"writes"}`},
		exchange{abi.HookCheckToolResult, `{"now":0,"seed":"0","tool":"t","arguments":{},"result":"\u2028"}`, `{"verdict":"block","message":"\u2028"}`},
	)
	if len(m.logs) > 0 {
		t.Errorf("logs %q", m.logs)
	}
}

func TestWorkflow(t *testing.T) {
	instantiate(t, "workflow").expect(
		exchange{abi.HookDescribe, `{"now":0,"seed":"0"}`, `{"name":"workflow","version":"0.1.0","abi":1,"kind":"workflow"}`},
		exchange{abi.HookStep, `{"now":0,"seed":"0","event":{"type":"start","tool_calls_left":8,"model_calls_left":9,"turns":[{"role":"user","content":"hi"}]}}`,
			`{"state":{"asked":true},"action":{"type":"model","request":{"model":"agent","messages":[{"turn":1}],"stream":true}}}`},
		exchange{abi.HookStep, `{"now":0,"seed":"0","state":{"asked":true},"event":{"type":"model","tool_calls_left":8,"model_calls_left":8,"ref":1,"text":"Hi."}}`,
			`{"action":{"type":"finish"}}`},
	)
}

// A handler's error, a handler that answers nothing and a request that is not
// the hook's message are logged and trap; the host never sees a reply.
func TestFailureIsLoggedAndTraps(t *testing.T) {
	for _, tt := range []struct {
		request string
		logs    []string
	}{
		{`{"now":0,"seed":"0","text":"error","history":[]}`, []string{"about to fail", "check_input: it failed: "}},
		{`{"now":0,"seed":"0","text":"nothing","history":[]}`, []string{"check_input: the handler returned neither a reply nor an error"}},
		{`{"now":0,"seed":"0","text":"help"}`, []string{`check_input: read the request: missing field "history"`}},
		{``, []string{"check_input: read the request: offset 0: unexpected end, expected an object"}},
	} {
		m := instantiate(t, "everycheck")
		_, err := m.call(abi.HookCheckInput, tt.request)
		if err == nil || !strings.Contains(err.Error(), "unreachable") {
			t.Errorf("%s: error = %v, want a trap by unreachable", tt.request, err)
		}
		if !slices.Equal(m.logs, tt.logs) {
			t.Errorf("%s: logs %q, want %q", tt.request, m.logs, tt.logs)
		}
	}
}

// A panic is a trap too, after the Go runtime wrote its stack to standard error.
func TestPanicTraps(t *testing.T) {
	m := instantiate(t, "everycheck")
	_, err := m.call(abi.HookCheckInput, `{"now":0,"seed":"0","text":"panic","history":[]}`)
	if err == nil || !strings.Contains(err.Error(), "unreachable") {
		t.Errorf("error = %v, want a trap by unreachable", err)
	}
	if !strings.HasPrefix(m.stderr.String(), "panic: on purpose\n") {
		t.Errorf("stderr %q", m.stderr.String())
	}
}

// A request that lies anywhere but in the room of the last weir_alloc traps.
func TestForeignRequestTraps(t *testing.T) {
	for name, move := range map[string]func(at uint64) (ptr, n uint64){
		"before":   func(at uint64) (uint64, uint64) { return at - 8, 20 },
		"inside":   func(at uint64) (uint64, uint64) { return at + 1, 19 },
		"zero":     func(uint64) (uint64, uint64) { return 0, 20 },
		"too long": func(at uint64) (uint64, uint64) { return at, 21 },
		"negative": func(at uint64) (uint64, uint64) { return at, 0xFFFFFFFF },
	} {
		m := instantiate(t, "noshouting")
		const request = `{"now":0,"seed":"0"}`
		ctx := context.Background()
		at, err := m.fn(abi.ExportAlloc).Call(ctx, uint64(len(request)))
		if err != nil {
			t.Fatal(err)
		}
		m.inst.Memory().WriteString(uint32(at[0]), request)
		ptr, n := move(at[0])
		if _, err := m.fn("describe").Call(ctx, ptr, n); err == nil || !strings.Contains(err.Error(), "unreachable") {
			t.Errorf("%s: %v, want a trap", name, err)
		}
		if len(m.logs) != 1 || !strings.Contains(m.logs[0], "weir_alloc") {
			t.Errorf("%s: logs %q", name, m.logs)
		}
	}
}

// BenchmarkCall is one check of a KiB of text in a module, without a host's
// metering and reset.
func BenchmarkCall(b *testing.B) {
	m := instantiate(b, "noshouting")
	request := `{"now":1764500000000,"seed":"18446744073709551615","text":"` + strings.Repeat("The quick brown fox. ", 45) +
		`","history":[{"role":"user","content":"hi"},{"role":"assistant","content":"Hello."}]}`
	b.SetBytes(int64(len(request)))
	for b.Loop() {
		if _, err := m.call(abi.HookCheckInput, request); err != nil {
			b.Fatal(err)
		}
	}
}
