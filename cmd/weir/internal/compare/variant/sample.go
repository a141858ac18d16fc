package variant

import "time"

// States in which runs end.
const (
	Completed = "completed"
	Blocked   = "blocked"
	Failed    = "failed"
	Cancelled = "cancelled"
)

// Sample is what one run's log says of it, without any text.
type Sample struct {
	Run        string
	Variant    string // empty: there were none when it began
	Generation string
	User       string // pseudonym
	Started    time.Time
	State      string
	Ended      bool
	Seconds    float64 // of running time: waiting for people does not count

	Kept            bool // what was decided is in the log
	Questions       int  // to a person
	Answers         int
	CallsRefused    int // by guardrails
	ResultsWithheld int // by guardrails
	Masks           int
	Cut             bool
	Fuel            uint64

	Recorded   bool // the recording is in the log, which tells these
	ToolCalls  int
	ModelCalls int
	GuardCalls int
	// Tokens of the agent's model; 0 where the provider does not tell, and of
	// output where the log does not, because the reply was cut.
	InputTokens, OutputTokens int
}

// told tells whether the run's tokens are known.
func (s *Sample) told() bool {
	return s.Recorded && (s.ModelCalls == 0 || s.InputTokens+s.OutputTokens > 0)
}

// timed tells whether a run's time says something about speed: a refusal is fast,
// and would make every guard look like an accelerator.
func (s *Sample) timed() bool { return s.State == Completed }
