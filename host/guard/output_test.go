package guard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// 2.7, the output decision: keys in order, masked entities by name, lengths
// without notices.
func TestOutputDecision(t *testing.T) {
	guards := []*fake{
		named(secretCut(3, "withheld", "sekrit"), "secrets"),
		named(digitMask("DIGITS"), "digits"), named(everyThird("STAR"), "stars"),
	}
	e := func(name, verdict string) string {
		return `{"name":"` + name + `","digest":"d-` + name + `","mode":"enforce","verdict":"` + verdict + `","reason_code":"","fuel":14,"ms":0}`
	}
	head := `{"stage":"output","name":"regex + deterministic PII output",`
	for _, c := range []struct{ name, text, want string }{
		{"passed", "é text", head + `"outcome":"passed","blocked":false,"modified":false,"oversized":false,"masked_entities":{},` +
			`"sanitized_output_length":6,"guards":[` + e("secrets", "allow") + `,` + e("digits", "allow") + `,` + e("stars", "allow") + `]}`},
		{"modified", "*** 123 4567 é", head + `"outcome":"modified","blocked":false,"modified":true,"oversized":false,"masked_entities":{"DIGITS":2,"STAR":1},` +
			`"sanitized_output_length":23,"guards":[` + e("secrets", "allow") + `,` + e("digits", "modify") + `,` + e("stars", "modify") + `]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, string(decide(t, guards, c.text, 2).Decision)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("over the limit", func(t *testing.T) {
		v := decide(t, guards, "0 2 4 6 8 0 2 4 6 8 0 2 4 6 8 x", 1)
		want := head + `"outcome":"blocked","blocked":true,"modified":false,"oversized":true,"masked_entities":{},` +
			`"sanitized_output_length":30,"guards":[` + once(e("secrets", "allow")) + `,` + once(e("digits", "allow")) + `,` + once(e("stars", "allow")) + `]}`
		if diff := cmp.Diff(want, string(v.Decision)); diff != "" {
			t.Errorf("decision (-want +got):\n%s", diff)
		}
	})
	t.Run("blocked", func(t *testing.T) {
		v := decide(t, guards, "a 123 sekrit 4567", 1)
		want := head + `"outcome":"blocked","blocked":true,"modified":true,"oversized":false,"masked_entities":{"DIGITS":1},` +
			`"sanitized_output_length":11,"pattern_index":3,"guards":[` + once(e("secrets", "block")) + `,` + once(e("digits", "modify")) + `,` + once(e("stars", "allow")) + `]}`
		if diff := cmp.Diff(want, string(v.Decision)); diff != "" {
			t.Errorf("decision (-want +got):\n%s", diff)
		}
		if !v.Cut || v.RawChars != 17 {
			t.Errorf("verdict %+v", v)
		}
	})
}

// A guard whose cut came behind another's did not block.
func TestOnlyTheCutThatEndedItCounts(t *testing.T) {
	v := decide(t, []*fake{named(secretCut(0, "0", "late"), "a"), named(secretCut(1, "1", "early"), "b")}, "early late", 1)
	for _, want := range []string{`"pattern_index":1`, `"name":"a","digest":"d-a","mode":"enforce","verdict":"allow"`, `"name":"b","digest":"d-b","mode":"enforce","verdict":"block"`} {
		if !strings.Contains(string(v.Decision), want) {
			t.Errorf("decision %s, want %s", v.Decision, want)
		}
	}
}

// once is an entry of a guard that was called once only.
func once(entry string) string { return strings.Replace(entry, `"fuel":14`, `"fuel":7`, 1) }

// decide guards a text that is pushed at once and checks how many calls it took.
func decide(t *testing.T, fs []*fake, text string, calls int) OutputVerdict {
	t.Helper()
	var guards []Guard
	for _, f := range fs {
		guards = append(guards, f.guard())
	}
	r := &recorder{}
	s := must(New(guards, Options{Clock: still, MaxOutputChars: 30})).Session(
		SessionOptions{Stamp: stamp, Observer: r, Release: func(string) {}})
	s.Sink().Push(text)
	if err := s.Sink().Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := s.Sink().Finish(t.Context())
	for _, got := range r.verdicts {
		if got.Calls != calls {
			t.Errorf("guard %s: %d calls, want %d", got.Guard, got.Calls, calls)
		}
	}
	return v
}
