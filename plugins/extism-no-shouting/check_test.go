package main

import (
	"context"
	"testing"
	"time"

	"weir/abi"
	"weir/host/plugin"
	"weir/host/plugin/plugintest"
)

// texts are what the module, its native code and its direct twin are held
// against each other with.
var texts = []struct {
	text  string
	block bool
}{
	{"hello", false}, {"HELLO", true}, {"Hello", false}, {"", false}, {"12 34", false}, {"12 DAYS", true},
	{"WO BLEIBT MEIN PAKET?!", true}, {"ÄÖÜ", true}, {"äöü", false}, {"日本", false}, {"日本A", true}, {"tab\tand \"quotes\"", false},
	{"WHERE\nIS \"IT\"\u2028", true},
}

func request(text string) []byte {
	return (&abi.CheckInputRequest{Call: abi.Call{Now: 1, Seed: "2"}, Text: text, History: []abi.Turn{}}).AppendJSON(nil)
}

func TestCheckInput(t *testing.T) {
	for _, c := range texts {
		reply, err := answer(abi.HookCheckInput, request(c.text))
		if err != nil {
			t.Fatal(err)
		}
		var v abi.Verdict
		if err := v.DecodeJSON(reply); err != nil || (v.Verdict == abi.VerdictBlock) != c.block {
			t.Errorf("%q: %s, %v", c.text, reply, err)
		}
	}
	if _, err := answer(abi.HookCheckInput, []byte(`{"text":1}`)); err == nil {
		t.Error("a request that is none is answered")
	}
}

func TestDescribe(t *testing.T) {
	reply, err := answer(abi.HookDescribe, nil)
	if err != nil {
		t.Fatal(err)
	}
	var d abi.Description
	if err := d.DecodeJSON(reply); err != nil {
		t.Fatal(err)
	}
	if err := d.Validate(); err != nil || d.Name != pluginName {
		t.Errorf("%+v, %v", d, err)
	}
}

// The module answers what the native code answers, and what the guardrail of
// package pdk's documentation does, which is its twin by the direct carrier.
func TestWasmAnswersEqual(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles modules")
	}
	ctx := context.Background()
	rt, err := plugin.NewRuntime(ctx, plugin.RuntimeOptions{CacheDir: plugintest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close(ctx) })
	load := func(dir, carrier string) *plugin.Plugin {
		p, err := rt.Load(ctx, plugin.Spec{Name: pluginName, Wasm: plugintest.Build(t, dir),
			Limits: plugin.Limits{Timeout: 10 * time.Second, Instances: 2}}) // machines that test are busy
		if err != nil {
			t.Fatal(err)
		}
		if p.Carrier() != carrier {
			t.Errorf("%s is carried by %s", dir, p.Carrier())
		}
		return p
	}
	carried, twin := load("plugins/"+pluginName, plugin.CarrierExtism), load("pdk/testdata/noshouting", plugin.CarrierDirect)
	for _, c := range texts {
		want, err := answer(abi.HookCheckInput, request(c.text))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []*plugin.Plugin{carried, twin} {
			got, _, err := p.Call(ctx, abi.HookCheckInput, request(c.text))
			if err != nil || string(got) != string(want) {
				t.Errorf("%q, %s: %s, %v; native %s", c.text, p.Carrier(), got, err, want)
			}
		}
	}
}
