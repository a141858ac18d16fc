package abi

// Verdicts.
const (
	VerdictAllow           = "allow"
	VerdictBlock           = "block"
	VerdictAskModel        = "ask_model"
	VerdictRequireApproval = "require_approval" // check_tool_call only
)

// Ask is the part of a check that is called again after ask_model: the state
// that the guard gave with its last verdict and the model's reply. Both are
// absent on the first call.
type Ask struct {
	State Raw       `json:"state,omitempty"`
	Reply *AskReply `json:"reply,omitempty"`
}

// CheckInputRequest is the conversation before any model sees it.
type CheckInputRequest struct {
	Call
	Text    string   `json:"text"`    // the latest user turn
	History []Turn   `json:"history"` // the trimmed turns before it
	Roles   []string `json:"roles,omitempty"`
	Ask
}

// CheckToolCallRequest is one call that the model proposes and that the host's
// own schema policy has accepted.
type CheckToolCallRequest struct {
	Call
	Tool      string   `json:"tool"`
	Arguments Raw      `json:"arguments"` // object, as proposed
	ReadOnly  bool     `json:"read_only"`
	Text      string   `json:"text"` // the latest user turn
	Roles     []string `json:"roles,omitempty"`
	Ask
}

// CheckToolResultRequest is one tool result before the model sees it.
type CheckToolResultRequest struct {
	Call
	Tool      string   `json:"tool"`
	Arguments Raw      `json:"arguments"`
	Result    string   `json:"result"`
	Failed    bool     `json:"failed,omitempty"`
	Roles     []string `json:"roles,omitempty"`
	Ask
}

// Verdict is the reply of check_input, check_tool_call and check_tool_result.
type Verdict struct {
	Verdict    string        `json:"verdict"`
	Message    string        `json:"message,omitempty"`     // for the user
	ReasonCode string        `json:"reason_code,omitempty"` // [a-z0-9_]{1,64}: decision event, model
	Reason     string        `json:"reason,omitempty"`      // for the log only
	Decision   Raw           `json:"decision,omitempty"`    // object for the decision event
	Ask        *ModelRequest `json:"ask,omitempty"`         // with VerdictAskModel
	State      Raw           `json:"state,omitempty"`       // with VerdictAskModel, at most MaxAskState
}

// Uses of check_output.
const (
	UseAnswer  = "answer"
	UseDisplay = "display"
)

// CheckOutputRequest is a piece of an answer (UseAnswer, the default) or every
// string of a tool result or step input (UseDisplay).
//
// For an answer, Text begins at this guard's own last hold_from:
//
//	… released or decided │ before │ text ………………………………│
//	                                 ▲ stream_pos         ▲ all that is known
type CheckOutputRequest struct {
	Call
	Use       string   `json:"use,omitempty"`
	StreamPos int64    `json:"stream_pos"`       // byte offset of Text in the run's whole text
	Before    string   `json:"before,omitempty"` // the last look_behind bytes before Text
	Text      string   `json:"text"`
	Texts     []string `json:"texts,omitempty"` // UseDisplay, in place of Text
	Final     bool     `json:"final,omitempty"` // no text will follow
	State     Raw      `json:"state,omitempty"` // what this guard returned last for this stream

	// Matches are all decided matches of the patterns that the guard declared:
	// three numbers for each, its place among the patterns, its start and its
	// end in Text; in the order of their starts and then of their patterns. No
	// match that is still to come begins before Open, the length of Text when
	// it is final. Only for guards that asked for them (send_matches), of an
	// answer and without State; without Matches a guard looks itself.
	Matches []int `json:"matches,omitempty"`
	Open    int   `json:"open,omitempty"`
}

// CheckOutputReply decides the text before HoldFrom. For a display there is no
// cut, no state and hold_from is 0.
type CheckOutputReply struct {
	Edits    []Edit `json:"edits,omitempty"`
	HoldFrom int    `json:"hold_from"` // len(text) when Final
	Cut      *Cut   `json:"cut,omitempty"`
	State    Raw    `json:"state,omitempty"` // at most MaxOutputState
}

// Edit replaces text[Start:End] by Replace. It lies before hold_from.
type Edit struct {
	Index   int    `json:"index,omitempty"` // UseDisplay: which of Texts
	Start   int    `json:"start"`
	End     int    `json:"end"`
	Replace string `json:"replace"`
	Label   string `json:"label"` // an entity, or secret:<n>
}

// Cut ends the answer at text[At:] and puts Notice in its place.
type Cut struct {
	At     int    `json:"at"`
	Notice string `json:"notice"`
	Label  string `json:"label"` // secret:<n>
}
