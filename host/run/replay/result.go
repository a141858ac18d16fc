package replay

import (
	"encoding/json"
	"time"

	"weir/host/run"
)

// Stages of a run, in its order.
const (
	StageInput      = "input"
	StageModel      = "model"
	StageTools      = "tools" // which calls are made
	StageToolCall   = "tool_call"
	StageApproval   = "approval"
	StageToolResult = "tool_result"
	StageOutput     = "output"
	StageRun        = "run"
)

// Kinds of change.
const (
	AllowBlock    = "allow->block"
	BlockAllow    = "block->allow"
	MaskNone      = "mask->none"
	NoneMask      = "none->mask"
	AllowApproval = "allow->approval"
	ApprovalAllow = "approval->allow"
	Tools         = "tools" // other calls are made
	Text          = "text"  // the client reads something else
	End           = "end"   // the run ends otherwise
)

// Kinds are all of them, in the order in which a report lists them.
func Kinds() []string {
	return []string{BlockAllow, AllowBlock, MaskNone, NoneMask, ApprovalAllow, AllowApproval, Tools, Text, End}
}

// Change is one thing that the other generation does differently.
type Change struct {
	Kind  string `json:"kind"`
	Stage string `json:"stage"`
	Step  int    `json:"step"` // of the workflow, from 1; 0: before the first
	What  string `json:"what"`
	Was   string `json:"was,omitempty"`
	Now   string `json:"now,omitempty"`
}

// What stood in the record where a question is unanswerable.
const (
	WasAllow    = "allow"
	WasBlock    = "block"
	WasMask     = "mask"
	WasApproval = "approval"
)

// Unanswered is a question about the other generation that the recording does
// not answer.
type Unanswered struct {
	Stage string `json:"stage"`
	Step  int    `json:"step"`
	Was   string `json:"was"`
	What  string `json:"what"`
	Why   string `json:"why"`
}

// Kind is the change for worse that cannot be ruled out; empty: none is.
func (u *Unanswered) Kind() string {
	switch u.Was {
	case WasBlock:
		return BlockAllow
	case WasMask:
		return MaskNone
	case WasApproval:
		return ApprovalAllow
	}
	return ""
}

// What a run came to.
const (
	StatusSame         = "same"
	StatusChanged      = "changed"
	StatusUnanswerable = "unanswerable" // nothing is known to change, and something is not known
	StatusSkipped      = "skipped"      // it cannot be replayed
)

// Result is what replaying one run said. Texts in it passed the guards of the
// recorded run, those under Now the guards of the other generation.
type Result struct {
	Run           string       `json:"run"`
	Generation    string       `json:"generation"`               // that it was recorded with
	GenerationNow string       `json:"generation_now,omitempty"` // that it was folded through
	Variant       string       `json:"variant,omitempty"`
	Contract      string       `json:"contract,omitempty"`
	Started       time.Time    `json:"started,omitzero"`
	State         string       `json:"state"`
	StateNow      string       `json:"state_now,omitempty"`
	Status        string       `json:"status"`
	Reason        string       `json:"reason,omitempty"` // of a run that was skipped
	First         *Change      `json:"first,omitempty"`  // the first action that differs
	Changes       []Change     `json:"changes,omitempty"`
	Unanswered    []Unanswered `json:"unanswered,omitempty"`
	Items         int          `json:"items"`    // questions about the run, those without an answer too
	Answered      int          `json:"answered"` // of them
	Released      string       `json:"released,omitempty"`
	Now           string       `json:"released_now,omitempty"` // where it is another text

	// What the guards' decisions cost, then and now, in units of fuel and in
	// milliseconds of time in guards.
	Fuel      uint64  `json:"fuel"`
	FuelNow   uint64  `json:"fuel_now"`
	Millis    float64 `json:"ms"`
	MillisNow float64 `json:"ms_now"`
	TookMS    float64 `json:"took_ms"` // of the replay
}

func (r *Result) change(c Change) { r.Changes = append(r.Changes, c) }

func (r *Result) unanswer(u Unanswered) { r.Unanswered = append(r.Unanswered, u) }

// finish decides what the run came to.
func (r *Result) finish(began time.Time) {
	r.TookMS = float64(time.Since(began).Microseconds()) / 1000
	r.Items = max(r.Items, len(r.Unanswered))
	r.Answered = max(0, r.Items-len(r.Unanswered))
	for i := range r.Changes {
		if r.First == nil || r.Changes[i].Step < r.First.Step {
			c := r.Changes[i]
			r.First = &c
		}
	}
	switch {
	case len(r.Changes) > 0:
		r.Status = StatusChanged
	case len(r.Unanswered) > 0:
		r.Status = StatusUnanswerable
	default:
		r.Status = StatusSame
	}
}

// costs adds up what decisions say that they cost.
func costs(decisions []run.Step) (fuel uint64, ms float64) {
	for _, d := range decisions {
		var decision struct {
			Guards []struct {
				Fuel uint64  `json:"fuel"`
				MS   float64 `json:"ms"`
			} `json:"guards"`
		}
		if json.Unmarshal(d.Output, &decision) != nil {
			continue
		}
		for _, g := range decision.Guards {
			fuel, ms = fuel+g.Fuel, ms+g.MS
		}
	}
	return fuel, ms
}
