package plugin_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"weir/abi"
	"weir/host/fault"
	"weir/host/plugin"
	"weir/host/plugin/plugintest"
)

func load(t testing.TB, spec plugin.Spec) *plugin.Plugin {
	t.Helper()
	if spec.Name == "" {
		spec.Name = "guest"
	}
	p, err := newRuntime(t).Load(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func probe(t testing.TB, p *plugin.Plugin, call abi.Call, what string) (string, error) {
	t.Helper()
	v, _, err := p.CheckInput(context.Background(), &abi.CheckInputRequest{Call: call, Text: what})
	if err != nil {
		return "", err
	}
	return v.Reason, nil
}

// DECISIONS 3: clock and randomness come from the request; sleeping moves the
// clock; there are no arguments, variables or files.
func TestGuestSeesOnlyItsRequest(t *testing.T) {
	p := load(t, plugin.Spec{Wasm: plugintest.Build(t, "host/plugin/testdata/probe"),
		Config: abi.Raw(`{"a":1}`), Prompts: []abi.Prompt{{Name: "p", Text: "words"}}})
	call := abi.Call{Now: 1700000000123, Seed: "42"}
	for what, want := range map[string]string{
		"config":     `{"a":1}|p=words`,
		"time":       "1700000000123",
		"sleep":      "1h0m0s",
		"timeout":    "the earlier one",
		"world":      "args 0 env 0 read true dir true",
		"collect":    "collected",
		"goroutines": "4950",
	} {
		for range 3 {
			if got, err := probe(t, p, call, what); err != nil || got != want {
				t.Errorf("%s: %q, %v; want %q", what, got, err, want)
			}
		}
	}
}

// A Go guest whose clocks show 0 cannot collect its garbage, so no clock is
// earlier than that of initialisation.
func TestTheEarliestClock(t *testing.T) {
	p := load(t, plugin.Spec{Wasm: plugintest.Build(t, "host/plugin/testdata/probe")})
	for _, now := range []int64{0, 1, -1} {
		for what, want := range map[string]string{"collect": "collected", "time": "1"} {
			if got, err := probe(t, p, abi.Call{Now: now, Seed: "0"}, what); err != nil || got != want {
				t.Errorf("now %d: %s: %q, %v; want %q", now, what, got, err, want)
			}
		}
	}
}

func TestRandomnessIsTheSeeds(t *testing.T) {
	p := load(t, plugin.Spec{Wasm: plugintest.Build(t, "host/plugin/testdata/probe")})
	seen := map[string]string{}
	for _, seed := range []string{"1", "2", "18446744073709551615"} {
		first, err := probe(t, p, abi.Call{Now: 5, Seed: seed}, "random")
		if err != nil {
			t.Fatal(err)
		}
		again, err := probe(t, p, abi.Call{Now: 6, Seed: seed}, "random")
		if err != nil || again != first {
			t.Errorf("seed %s: %q, then %q, %v", seed, first, again, err)
		}
		if other, ok := seen[first]; ok {
			t.Errorf("seeds %s and %s give the same bytes", seed, other)
		}
		seen[first] = seed
	}
}

// FAULTS P10, P12 with a Go guest: what its run-time does when it dies.
func TestGoGuestFailures(t *testing.T) {
	p := load(t, plugin.Spec{Wasm: plugintest.Build(t, "host/plugin/testdata/probe"),
		Limits: plugin.Limits{Memory: 16 << 20, Timeout: time.Minute, Reply: 1 << 20, Instances: 1}})
	for what, code := range map[string]string{
		"error":    plugin.CodeTrap,
		"panic":    plugin.CodeTrap,
		"exit":     plugin.CodeExit,
		"memory":   plugin.CodeMemory,
		"large":    plugin.CodeTooLarge,
		"deadlock": plugin.CodeTrap,
	} {
		for range 3 {
			_, err := probe(t, p, abi.Call{Now: 1, Seed: "1"}, what)
			if fault.Of(err) != fault.Plugin || fault.CodeOf(err) != code {
				t.Errorf("%s: %v (code %q), want code %q", what, err, fault.CodeOf(err), code)
			}
			if err != nil && strings.Contains(err.Error(), "own words") {
				t.Errorf("%s: the error quotes a plugin that may not log: %v", what, err)
			}
		}
		if got, err := probe(t, p, abi.Call{Now: 1, Seed: "1"}, "fine"); err != nil || got != "fine" {
			t.Fatalf("after %s: %q, %v", what, got, err)
		}
	}
}

func TestConfigureRefuses(t *testing.T) {
	_, err := newRuntime(t).Load(context.Background(), plugin.Spec{Name: "p",
		Wasm: plugintest.Build(t, "host/plugin/testdata/probe"), Config: abi.Raw(`{"refuse":true}`)})
	want := `plugin p: configure: the configuration is refused: "it says refuse"`
	if fault.Of(err) != fault.Invalid || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
