package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"weir/host/plugin/plugintest"
)

// windowed is a module that lets parts of its word pass, unless it is driven by
// a window.
func windowed(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles a module")
	}
	file := filepath.Join(t.TempDir(), "windowed.wasm")
	write(t, file, string(plugintest.Build(t, "pdk/testdata/windowed")))
	return file
}

func TestGuardWatches(t *testing.T) {
	module := windowed(t)
	settings := `{"word":"secret","hold_back":6}`
	got := invoke(t, nil, "A big secret, €9.", "guard", "--plugin", module, "--settings", settings, "--chunk", "5")
	want := `    1 "A big"                   held "A big" by windowed
    2 " secr"                   released "A bi"  held "g secr" by windowed
    3 "et, €"                   released "g "  held "secret, €" by windowed
    4 "9."                      released "<WORD>,"  held " €9." by windowed
  end                           released " €9."
`
	// An edit shows itself below its step.
	lines := strings.SplitAfter(got.stdout, "\n")
	var steps, edits []string
	for _, l := range lines[:min(len(lines), 6)] {
		if strings.Contains(l, "→") {
			edits = append(edits, l)
		} else {
			steps = append(steps, l)
		}
	}
	if got.code != exitOK || strings.Join(steps, "") != want || len(edits) != 1 ||
		edits[0] != "      windowed: \"secret\" → \"<WORD>\" (WORD)\n" {
		t.Errorf("code %d, steps:\n%s%s%s", got.code, got.stdout, edits, got.stderr)
	}
	for _, part := range []string{`released  "A big <WORD>, €9."`, "calls     windowed 5", `"masked_entities":{"WORD":1}`} {
		if !strings.Contains(got.stdout, part) {
			t.Errorf("summary lacks %q:\n%s", part, got.stdout)
		}
	}
}

func TestGuardAsJSON(t *testing.T) {
	got := invoke(t, nil, "my secret", "guard", "--plugin", windowed(t), "--settings", `{"word":"secret","hold_back":6}`, "--json")
	lines := strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n")
	if got.code != exitOK || len(lines) != 4 {
		t.Fatalf("%+v", got)
	}
	var first struct {
		Step                  int
		Piece, Released, Held string
		Guards                []struct {
			Name  string
			Calls int
		}
	}
	var last struct {
		Released string
		Decision struct{ Outcome string }
	}
	for i, into := range map[int]any{0: &first, 1: new(any), 2: new(any), 3: &last} {
		if err := json.Unmarshal([]byte(lines[i]), into); err != nil {
			t.Errorf("%s: %v", lines[i], err)
		}
	}
	if first.Step != 1 || first.Piece != "my " || first.Held != "my " || first.Guards[0].Calls != 1 ||
		last.Released != "my <WORD>" || last.Decision.Outcome != "modified" {
		t.Errorf("%+v, %+v", first, last)
	}
}

// The promise is proved of a guard that keeps it, and one that does not is shown
// with the smallest text that breaks it.
func TestGuardProves(t *testing.T) {
	module := windowed(t)
	const text = "It is a secret, and that secret is long."
	got := invoke(t, nil, text, "guard", "--prove", "--plugin", module, "--settings", `{"word":"secret","hold_back":6}`)
	if got.code != exitOK || !strings.HasPrefix(got.stdout, "holds: 142 ways to cut 40 characters, each released as the whole (windowed)") {
		t.Errorf("%+v", got)
	}
	careless := []string{"guard", "--prove", "--plugin", module, "--settings", `{"word":"secret"}`}
	got = invoke(t, nil, text, careless...)
	if got.code != exitFailed || !strings.Contains(got.stdout, `  pieces   ["s" "ecret"]`) || !strings.Contains(got.stdout, `  whole    "<WORD>"`) {
		t.Errorf("%+v", got)
	}
	got = invoke(t, nil, text, append(careless, "--json")...)
	var proof struct {
		Holds  bool
		Pieces []string
	}
	if err := json.Unmarshal([]byte(got.stdout), &proof); err != nil || proof.Holds || len(proof.Pieces) != 2 || got.code != exitFailed {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestGuardRefuses(t *testing.T) {
	config := filepath.Join(deployment(t), "agent.toml")
	for want, args := range map[string][]string{
		`weir guard: plugin "nobody": expected a guardrail of `: {"--config", config, "--plugin", "nobody"},
		`weir guard: plugin "react": expected a guardrail of `:  {"--config", config, "--plugin", "react"},
		"weir guard: plugin gone: ":                             {"--plugin", filepath.Join(t.TempDir(), "gone.wasm")},
		"invalid value":                                         {"--chunk", "0"},
	} {
		if got := invoke(t, nil, "text", append([]string{"guard"}, args...)...); got.code == exitOK || !strings.Contains(got.stderr, want) {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if got := invoke(t, nil, "", "guard", "--prove", "--config", config); got.code != exitFailed || !strings.Contains(got.stderr, "weir guard: text: expected something to cut on stdin") {
		t.Errorf("nothing to prove: %+v", got)
	}
	// With none of the guards that cut or mask, whatever is released is the whole.
	alone := filepath.Join(filepath.Dir(config), "alone.toml")
	write(t, alone, "[agent]\nworkflow = 'flow'\n[tools.mcp]\ninclude = ['a']\n[prompts]\nsystem = 'prompts/system.md'\n[plugins.flow]\n")
	for _, args := range [][]string{{"guard", "--config", alone}, {"guard", "--prove", "--config", alone}} {
		if got := invoke(t, nil, "text", args...); got.code != exitFailed || !strings.Contains(got.stderr, "alone.toml: expected a guardrail with check_output") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if got := invoke(t, nil, "\xff", "guard", "--config", config); got.code != exitFailed || !strings.Contains(got.stderr, "text: expected UTF-8") {
		t.Errorf("%+v", got)
	}
}
