package run

// State is where a run stands (agent-service contract, 2.11):
//
//	received ─► screening_input ─► running ◄─► awaiting_approval
//	                  │               │
//	                  ▼               ▼
//	               blocked        completed        any ─► failed, cancelled
type State string

// The states; the last four are terminal.
const (
	Received         State = "received"
	ScreeningInput   State = "screening_input"
	Running          State = "running"
	AwaitingApproval State = "awaiting_approval"
	Blocked          State = "blocked"
	Completed        State = "completed"
	Failed           State = "failed"
	Cancelled        State = "cancelled"
)

// Terminal reports whether a run in this state has ended.
func (s State) Terminal() bool {
	return s == Blocked || s == Completed || s == Failed || s == Cancelled
}

// May reports whether a run may go from s to next.
func (s State) May(next State) bool {
	switch next {
	case Failed, Cancelled:
		return !s.Terminal()
	case ScreeningInput:
		return s == Received
	case Running:
		return s == ScreeningInput || s == AwaitingApproval
	case Blocked:
		return s == ScreeningInput
	case AwaitingApproval, Completed:
		return s == Running
	}
	return false
}
