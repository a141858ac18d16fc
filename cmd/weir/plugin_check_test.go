package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"weir/abi"
	"weir/host/plugin/plugintest"
)

// A module that a host refuses is shown as far as it can be read, with the
// reason.
func TestPluginCheckRefuses(t *testing.T) {
	dir := t.TempDir()
	foreign := &plugintest.Asm{}
	foreign.Import("env", "read_file", "i", "i")
	foreign.Memory(1, -1)
	other := plugintest.NewGuest().Answer(abi.HookCheckInput, `{"verdict":"allow"}`).Omit(abi.ExportMarker)
	for name, tt := range map[string]struct {
		wasm []byte
		want []string
	}{
		"text":    {[]byte("#!/bin/sh\n"), []string{"REFUSED ", "expected a WebAssembly module", "size     10 bytes"}},
		"foreign": {foreign.Bytes(), []string{"REFUSED ", `imports "env.read_file"`, "import   env.read_file (i32) -> (i32)", "abi      0"}},
		"marker":  {other.Build(), []string{"REFUSED ", "weir_abi_1", "export   check_input"}},
		"short":   {[]byte("\x00asm\x01\x00\x00\x00\x01\x05"), []string{"reason   plugin short: the file ends too early"}},
		"pattern": {patterned("(", "x").Build(), []string{"REFUSED ", `reason   guard pattern: pattern "b": missing closing )`, "plugin   by-hand 1.0.0, guardrail"}},
		"large": {func() []byte {
			g := plugintest.NewGuest().Answer(abi.HookCheckInput, `{"verdict":"allow"}`)
			g.Pages = 2000
			return g.Build()
		}(), []string{"REFUSED ", "needs 125 MiB of memory to begin with, its limit is 64 MiB"}},
	} {
		file := filepath.Join(dir, name+".wasm")
		write(t, file, string(tt.wasm))
		got := invoke(t, nil, "", "plugin", "check", file)
		if got.code != exitFailed {
			t.Errorf("%s: %+v", name, got)
		}
		for _, want := range tt.want {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, got.stdout)
			}
		}
		var c checked
		got = invoke(t, nil, "", "plugin", "check", file, "--json")
		if err := json.Unmarshal([]byte(got.stdout), &c); err != nil || got.code != exitFailed || c.OK || c.Reason == "" || c.Size != len(tt.wasm) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got := invoke(t, nil, "", "plugin", "check", filepath.Join(dir, "none.wasm")); got.code != exitFailed || got.stdout != "" || !strings.HasPrefix(got.stderr, "weir plugin check: ") {
		t.Errorf("no file: %+v", got)
	}
}

// patterned declares two patterns, a and b, for the host to look for.
func patterned(b, a string) *plugintest.Guest {
	g := plugintest.NewGuest().Answer(abi.HookCheckOutput, `{"hold_from":0}`)
	g.Settings = abi.ConfigureReply{LookBehind: 4, Patterns: []abi.Pattern{{ID: "a", Expr: a}, {ID: "b", Expr: b}}}
	return g
}

// What a module says of itself is text of somebody else: it moves no cursor,
// begins no line and turns no letters around.
func TestPluginCheckPrintsGuestText(t *testing.T) {
	g := patterned("y", "x")
	g.Description = abi.Description{ABI: abi.Version, Kind: abi.KindGuardrail, Name: "g", Version: "1.0.0", Summary: "a\x1b[2J\r\nREFUSED b\u202ec\u009b1m é",
		Cases: []abi.Case{{Name: "d\x1b[31m\nok e", Hook: abi.HookCheckOutput,
			Request: abi.Raw(`{"now":0,"seed":"0","stream_pos":0,"text":"","final":true}`), Expect: abi.Raw(`{"hold_from":0}`)}}}
	file := filepath.Join(t.TempDir(), "g.wasm")
	write(t, file, string(g.Build()))
	check, test := invoke(t, nil, "", "plugin", "check", file), invoke(t, nil, "", "plugin", "test", file)
	for _, got := range []result{check, test} {
		if got.code != exitOK || strings.ContainsAny(got.stdout, "\x1b\r\u202e\u009b") {
			t.Errorf("exit %d, %q", got.code, got.stdout)
		}
	}
	for want, got := range map[string]string{
		"summary  a [2J  REFUSED b c 1m é\n": check.stdout,
		"ok     d [31m ok e (check_output, ": test.stdout,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

// A module of the Extism carrier is one like any other.
func TestPluginCheckExtism(t *testing.T) {
	file := filepath.Join(t.TempDir(), "g.wasm")
	write(t, file, string(plugintest.NewExtismGuest().Answer(abi.HookCheckInput, `{"verdict":"allow"}`).Build()))
	got := invoke(t, nil, "", "plugin", "check", file)
	if got.code != exitOK || !strings.HasPrefix(got.stdout, "ok ") || !strings.Contains(got.stdout, "\nabi      1 (this host speaks 1), extism carrier\n") {
		t.Errorf("%+v", got)
	}
	got = invoke(t, nil, `{"text":"x","history":[]}`, "plugin", "call", "--hook", "check_input", file)
	if got.code != exitOK || got.stdout != "{\"verdict\":\"allow\"}\n" {
		t.Errorf("%+v", got)
	}
}

// Every case is run and printed, whatever became of the one before.
func TestPluginTest(t *testing.T) {
	g := plugintest.NewGuest().Answer(abi.HookCheckInput, `{"verdict":"allow"}`)
	request := abi.Raw(`{"now":0,"seed":"0","text":"x","history":[]}`)
	g.Description = abi.Description{Name: "by-hand", Version: "1.0.0", ABI: abi.Version, Cases: []abi.Case{
		{Name: "it blocks", Hook: abi.HookCheckInput, Request: request, Expect: abi.Raw(`{"verdict":"block"}`)},
		{Name: "it allows", Hook: abi.HookCheckInput, Request: request, Expect: abi.Raw(`{"verdict":"allow"}`)},
	}}
	file := filepath.Join(t.TempDir(), "g.wasm")
	write(t, file, string(g.Build()))
	got := invoke(t, nil, "", "plugin", "test", file)
	if got.code != exitFailed || !strings.HasPrefix(got.stdout, "FAILED it blocks (check_input): plugin g: self-check ") ||
		!strings.Contains(got.stdout, "\nok     it allows (check_input, ") || !strings.HasSuffix(got.stdout, "2 cases, 1 failed\n") {
		t.Errorf("%+v", got)
	}
	var all []tested
	got = invoke(t, nil, "", "plugin", "test", file, "--json")
	if err := json.Unmarshal([]byte(got.stdout), &all); err != nil || got.code != exitFailed || len(all) != 2 || all[0].OK || !all[1].OK {
		t.Errorf("%+v, %v", got, err)
	}
}
