package main

import (
	"strings"
	"testing"

	"weir/host/admin"
	folded "weir/host/run/replay"
)

// W7: policies whose base is the same are told apart by what else is printed.
func TestPrintVariants(t *testing.T) {
	one, other := strings.Repeat("1", 64), strings.Repeat("2", 64)
	printed := func(s admin.Status) string {
		var out strings.Builder
		s.Active.Generation = one
		printStatus(&out, s)
		return out.String()
	}
	for _, tc := range []struct{ status, want string }{
		{printed(admin.Status{Held: one}), "held       111111111111 with other variants or shares was rolled back from; "},
		{printed(admin.Status{Held: other}), "held       222222222222 was rolled back from; "},
		{printed(admin.Status{Previous: one}), "previous   111111111111 with other variants or shares\n"},
		{printed(admin.Status{Previous: other}), "previous   222222222222\n"},
	} {
		if !strings.Contains(tc.status, tc.want) {
			t.Errorf("%s\nlacks %q", tc.status, tc.want)
		}
	}
	summary := func(judged map[string]int) string {
		var out strings.Builder
		(&weir{stdout: &out}).printReplay(&folded.Summary{Generation: one, Judged: judged})
		return out.String()
	}
	if got := summary(map[string]int{one: 3, other: 4}); !strings.Contains(got, "tried        111111111111, 3 runs\nin a variant 222222222222, 4 runs\n") {
		t.Errorf("a base and a variant: %s", got)
	}
	if got := summary(map[string]int{one: 3}); !strings.Contains(got, "tried        111111111111, 3 runs\nreplayed") {
		t.Errorf("a base alone: %s", got)
	}
}
