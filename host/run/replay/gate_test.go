package replay

import (
	"strings"
	"testing"
)

func TestParseGate(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", ""},
		{"block->allow=0", "block->allow=0"},
		{" allow->block <= 0.5% , mask->none=0%", "allow->block<=0.5%;mask->none=0%"},
		{"changed<=3,unanswerable<=100%", "changed<=3;unanswerable<=100%"},
		{"block->allow", "!expected KIND"},
		{"block->nothing=0", "!expected one of"},
		{"text=1", "!= says 0 only"},
		{"text<=1.5", "!expected a whole number"},
		{"text<=101%", "!expected a whole number"},
		{"text<=-1", "!expected a whole number"},
		{"text<=NaN", "!expected a whole number"},
		{"text<=1e400", "!expected a whole number"},
		{"text=0,text<=1", "!twice"},
		{"text=0,", "!expected KIND"},
	} {
		rules, err := ParseGate(tc.text)
		var got []string
		for _, r := range rules {
			got = append(got, r.String())
		}
		if reason, refused := strings.CutPrefix(tc.want, "!"); refused {
			if err == nil || !strings.Contains(err.Error(), reason) {
				t.Errorf("%q: %v, want %q", tc.text, err, reason)
			}
		} else if err != nil || strings.Join(got, ";") != tc.want {
			t.Errorf("%q: %q, %v", tc.text, got, err)
		}
	}
}

func FuzzParseGate(f *testing.F) {
	f.Add("block->allow=0,allow->block<=0.5%")
	f.Add("changed<=3")
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := ParseGate(text)
		if err != nil {
			return
		}
		var parts []string
		for _, r := range rules {
			parts = append(parts, r.String())
		}
		again, err := ParseGate(strings.Join(parts, ","))
		if err != nil || len(again) != len(rules) {
			t.Fatalf("%q: %v, then %v, %v", text, rules, again, err)
		}
		for i := range rules {
			if rules[i] != again[i] {
				t.Errorf("%q: %v, then %v", text, rules[i], again[i])
			}
		}
	})
}

// A gate counts a run once, counts what cannot be ruled out, and is not passed
// by an empty record.
func TestGateFailsClosed(t *testing.T) {
	results := []*Result{
		{Status: StatusChanged, Changes: []Change{{Kind: BlockAllow}, {Kind: BlockAllow}}},
		{Status: StatusUnanswerable, Unanswered: []Unanswered{{Was: WasBlock}}},
		{Status: StatusUnanswerable, Unanswered: []Unanswered{{Was: WasAllow}}},
		{Status: StatusSame}, {Status: StatusSkipped, Reason: "the client left"},
	}
	for _, tc := range []struct {
		gate    string
		runs    int
		unknown int
		passed  bool
	}{
		{"block->allow=0", 2, 1, false}, {"block->allow<=2", 2, 1, true}, {"block->allow<=49%", 2, 1, false}, {"block->allow<=50%", 2, 1, true},
		{"mask->none=0", 0, 0, true}, {"changed<=1", 1, 0, true}, {"unanswerable<=1", 2, 0, false}, {"unanswerable<=2", 2, 0, true},
	} {
		rules, err := ParseGate(tc.gate)
		if err != nil {
			t.Fatal(err)
		}
		s := sum("g", results, rules)
		if c := s.Checks[0]; c.Runs != tc.runs || c.Unknown != tc.unknown || c.Passed != tc.passed || s.Passed() != tc.passed {
			t.Errorf("%s: %+v", tc.gate, c)
		}
	}
	rules, _ := ParseGate("block->allow=0")
	if s := sum("g", results[4:], rules); s.Passed() || s.Failed() != "no run could be replayed" {
		t.Errorf("an empty record passes: %+v", s)
	}
	if s := sum("g", nil, nil); !s.Passed() {
		t.Error("without a gate nothing fails")
	}
}
