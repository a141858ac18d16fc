package replay

import (
	"encoding/json"
	"testing"

	"weir/host/run"
)

const chances = 300

// DECISIONS 5: whatever a run does, the same generation does it again: the same
// actions, the same verdicts on what is kept, the same released text. And
// another one that does the same is never said to do something else: what it
// would have to see is unanswerable.
func TestSameMakesNoDifference(t *testing.T) {
	policy, other := newNative(t, ""), newNative(t, "x")
	counts := map[string]int{}
	for seed := range uint64(chances) {
		rec := record(t, policy, seed)
		same, err := Run(t.Context(), Target{Policy: policy, People: agrees{}, Pauses: agrees{}, Options: run.Options{MaxToolCalls: 4}}, rec)
		if err != nil {
			t.Fatal(err)
		}
		if same.Status != StatusSame || same.Answered != same.Items {
			body, _ := json.MarshalIndent(same, "", " ")
			log, _ := json.MarshalIndent(rec, "", " ")
			t.Fatalf("seed %d: %s\n%s", seed, body, log)
		}
		got, err := Run(t.Context(), Target{Policy: other, People: agrees{}, Pauses: agrees{}, Options: run.Options{MaxToolCalls: 4}}, rec)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Changes) > 0 {
			body, _ := json.MarshalIndent(got, "", " ")
			log, _ := json.MarshalIndent(rec, "", " ")
			t.Fatalf("seed %d: a change that is none: %s\n%s", seed, body, log)
		}
		counts[got.Status]++
		counts[string(rec.State)]++
		for _, q := range rec.Questions {
			counts["asked "+q.Outcome]++
		}
		counts["masks"] += len(rec.Recording.Edits)
		if rec.Recording.Stop != nil {
			counts["cuts"]++
		}
	}
	t.Log(counts)
	for _, what := range []string{StatusSame, StatusUnanswerable, string(run.Blocked), string(run.Completed), string(run.Failed), "asked answered", "asked expired", "masks", "cuts"} {
		if counts[what] == 0 {
			t.Errorf("chance never had %s", what)
		}
	}
}
