package replay

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"weir/host/run/replay"
)

// The page names all generations, says everything of the gate, and no text in
// it is markup.
func TestReport(t *testing.T) {
	const evil = "<script>alert(1)</script>"
	s := &replay.Summary{Generation: strings.Repeat("b", 64), Recorded: map[string]int{strings.Repeat("a", 64): 2},
		Judged: map[string]int{strings.Repeat("b", 64): 1, strings.Repeat("c", 64): 2}, At: time.Unix(0, 0).UTC(),
		Runs: 3, Replayed: 2, Same: 1, Changed: 1, Skipped: map[string]int{evil: 1}, Kinds: map[string]int{replay.AllowBlock: 1},
		Unknown: map[string]int{replay.MaskNone: 1}, Items: 8, Answered: 7,
		Checks: []replay.Check{{Rule: "allow->block=0", Runs: 1}},
		Results: []*replay.Result{{Run: "run-same", Status: replay.StatusSame}, {Run: "run-changed", GenerationNow: strings.Repeat("c", 64), Status: replay.StatusChanged,
			Changes:    []replay.Change{{Kind: replay.AllowBlock, What: evil, Was: evil, Now: evil}},
			Unanswered: []replay.Unanswered{{Stage: replay.StageOutput, Was: replay.WasMask, What: evil, Why: evil}}, Released: evil, Now: "other"}}}
	var out bytes.Buffer
	if err := Write(&out, Report{s, evil}); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, want := range []string{s.Generation, strings.Repeat("a", 64), strings.Repeat("b", 64) + "</code>, 1 runs", strings.Repeat("c", 64) + "</code>, 2 runs", "tried with cccccccccccc", "run-changed", "87.5 %", "allow-&gt;block=0", "not passed", "signature", "&lt;script&gt;"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, never := range []string{evil, "run-same", "http://", "https://", "src=", "href="} {
		if strings.Contains(page, never) {
			t.Errorf("the page has %q", never)
		}
	}
	s.Checks[0] = replay.Check{Rule: "allow->block<=1", Runs: 1, Passed: true}
	out.Reset()
	if err := Write(&out, Report{s, ""}); err != nil || strings.Contains(out.String(), "not passed") {
		t.Errorf("a gate that is passed: %v", err)
	}
}
