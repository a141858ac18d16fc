package python_test

import (
	"os/exec"
	"testing"

	"weir/cmd/weir/internal/agentv/python"
)

// agentv.md 1.2: what an agent reads after a tool.
func TestObservation(t *testing.T) {
	for in, want := range map[string]string{
		`{"status":"success","message":"12:00 UTC"}`:        "12:00 UTC",
		`{"status":"success","content":"c"}`:                "c",
		`{"message":"","content":"c"}`:                      "c",
		`{"status":"success","utc":"2026-01-01T00:00:00Z"}`: "{'status': 'success', 'utc': '2026-01-01T00:00:00Z'}",
		`{"message":{"message":"m"}}`:                       "{'message': 'm'}",
		`{"message":[1]}`:                                   "[1]",
		`"text"`:                                            "text",
		`7`:                                                 "7",
		`null`:                                              "None",
		`{"status":"policy_violation","violation":"Amount 51"}`: "{'status': 'policy_violation', 'violation': 'Amount 51'}",
	} {
		if got, err := python.Observation([]byte(in)); err != nil || got != want {
			t.Errorf("Observation(%s) = %q, %v, want %q", in, got, err, want)
		}
	}
	if got, err := python.Observations([]byte(`[{"status":"success","b":1,"a":"é"},"x"]`)); err != nil || got != `Tools returned: [{"status": "success", "b": 1, "a": "\u00e9"}, "x"]` {
		t.Errorf("Observations: %q, %v", got, err)
	}
}

var values = map[string]string{
	`{"b":[true,false,null],"a":{"x":1.50,"y":-0,"z":1e16}}`:                   `{'b': [True, False, None], 'a': {'x': 1.5, 'y': 0, 'z': 1e+16}}`,
	`["it's","say \"hi\"","it's \"both\"","é\u0085\u200b\u2028\n\t\\\u0007😀"]`: `["it's", 'say "hi"', 'it\'s "both"', 'é\x85\u200b\u2028\n\t\\\x07😀']`,
	`"\udb40\udc01 \u00a0"`: `'\U000e0001 \xa0'`,
	`{}`:                    `{}`,
}

func TestRepr(t *testing.T) {
	for in, want := range values {
		if got, err := python.Repr(nil, []byte(in)); err != nil || string(got) != want {
			t.Errorf("Repr(%s)\n got %s, %v\nwant %s", in, got, err, want)
		}
	}
	if b, err := python.Repr([]byte("x"), []byte(`{"a":`)); err == nil || string(b) != "x" {
		t.Errorf("of garbage: %q, %v", b, err)
	}
}

// The reference itself, where it is installed.
func TestReprIsPython(t *testing.T) {
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: repr is only held against recorded lines")
	}
	for in, want := range values {
		cmd := exec.Command(interpreter, "-c", "import json,sys; sys.stdout.buffer.write(repr(json.loads(sys.argv[1])).encode())", in)
		if got, err := cmd.Output(); err != nil || string(got) != want {
			t.Errorf("Python's repr of %s is %s, %v, want %s", in, got, err, want)
		}
	}
}
