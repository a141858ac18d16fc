package main

import (
	"strings"
	"testing"
)

// A flag's value that is none is answered by what was expected, whichever flag
// it is, and the help knows the flags as they are.
func TestFlagValues(t *testing.T) {
	for _, tt := range []struct {
		args   []string
		stderr string // begins with
	}{
		{[]string{"probe", "http", "--timeout", "5"}, `invalid value "5" for flag -timeout: expected a positive duration with its unit, such as 5s or 1m30s`},
		{[]string{"probe", "tcp", "--timeout=-1s"}, `invalid value "-1s" for flag -timeout: expected a positive duration with its unit`},
		{[]string{"conform", "--ask-timeout", "-1m"}, `invalid value "-1m" for flag -ask-timeout: expected a positive duration`},
		{[]string{"replay", "--since", "24"}, `invalid value "24" for flag -since: expected a positive duration`},
		{[]string{"admin", "reload", "--replay", "1d"}, `invalid value "1d" for flag -replay: expected a positive duration`},
		{[]string{"agentv", "run", "--attempts", "x"}, `invalid value "x" for flag -attempts: expected a whole number, none below 0`},
		{[]string{"agentv", "run", "--max-turns", "-1"}, `invalid value "-1" for flag -max-turns: expected a whole number, none below 0`},
		{[]string{"agentv", "run", "--pass-rate", "half"}, `invalid value "half" for flag -pass-rate: expected a number, none below 0`},
		{[]string{"compare", "--seed", "-1"}, `invalid value "-1" for flag -seed: expected a whole number, none below 0`},
		{[]string{"version", "--json=maybe"}, `invalid boolean value "maybe" for -json: expected true or false`},
	} {
		got := invoke(t, nil, "", tt.args...)
		if got.code != exitUsage || got.stdout != "" || !strings.HasPrefix(got.stderr, tt.stderr) || !strings.Contains(got.stderr, "\nusage: weir "+tt.args[0]) {
			t.Errorf("%q: %+v, want %q", tt.args, got, tt.stderr)
		}
	}
	if got := invoke(t, nil, "", "probe", "http", "--timeout", "5"); !strings.Contains(got.stderr, "-timeout duration\n") || !strings.Contains(got.stderr, "(default 5s)") {
		t.Errorf("the help after a mistake: %s", got.stderr)
	}
	if got := invoke(t, nil, "", "version", "--json"); got.code != exitOK || got.stderr != "" {
		t.Errorf("a flag without a value: %+v", got)
	}
}
