package replay

import (
	"encoding/json"
	"testing"
	"time"

	"weir/host/run"
)

// A recording comes from a store or from a listener: whatever stands in it, a
// replay of it ends, with a result.
func FuzzRecording(f *testing.F) {
	policy := newNative(f, "")
	for seed := range uint64(12) {
		rec := record(f, policy, seed)
		body, err := json.Marshal(rec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"State":"completed","Turns":[{"role":"user","content":"x"}],"Released":"abc","Recording":{"heard":[{"type":"model","said":99}],"edits":[{"start":5,"end":2},{"start":-4,"end":900}],"stop":{"at":-3,"notice":"abc"}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		rec := new(run.Recorded)
		if json.Unmarshal(body, rec) != nil {
			return
		}
		rec.Run = "run-1"
		got, err := Run(t.Context(), Target{Policy: policy, People: agrees{}, Pauses: agrees{}, Options: run.Options{MaxToolCalls: 4}, Timeout: 5 * time.Second}, rec)
		if err != nil || got.Status == "" || got.Answered < 0 || got.Answered > got.Items {
			t.Errorf("%v, %+v", err, got)
		}
	})
}
