package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"weir/abi"
)

// RecordVersion is the version of the records' layout. A reader that meets
// another one refuses it by name.
const RecordVersion = 1

// Kinds of record, in the order in which they can first appear.
const (
	RecordRunStarted           = "run_started"
	RecordRequest              = "request"       // the conversation as it came
	RecordQuestion             = "question"      // the same, redacted for display; only of a run that was not blocked
	RecordStep                 = "step"          // shown to the client, in its display form
	RecordDecision             = "decision"      // a step that ends a guardrail's stage
	RecordEvent                = "event"         // what the workflow was given
	RecordAction               = "action"        // what it answered
	RecordSaid                 = "said"          // text of a model whose reply failed in the end
	RecordReleased             = "released"      // text that the client has
	RecordResult               = "result"        // of one call of an action that has several
	RecordCallSent             = "call_sent"     // one call that may change something is about to be made
	RecordCallProposed         = "call_proposed" // one call that the caller shall perform; interaction_opened then asks for all of them
	RecordInteractionOpened    = "interaction_opened"
	RecordParked               = "parked"
	RecordInteractionAnswered  = "interaction_answered"
	RecordInteractionCancelled = "interaction_cancelled" // the client left, or the run ended
	RecordInteractionExpired   = "interaction_expired"
	RecordRunClaimed           = "run_claimed"
	RecordHuman                = "human" // a person's answer, redacted for display
	RecordActionClaims         = "action_claims"
	RecordActionSent           = "action_sent"
	RecordActionSettled        = "action_settled"
	RecordRecording            = "recording" // what a replay needs beside the records that are kept
	RecordRunEnded             = "run_ended"
)

// Header is a record without its payload. The chain runs over headers:
// Previous is the SHA-256 of the header before it, as it was written, so
// payloads can be deleted and the chain still verifies.
type Header struct {
	Version    int    `json:"version"`
	Run        string `json:"run"`
	N          int    `json:"n"` // 1, 2, 3 …
	Epoch      int    `json:"epoch"`
	Kind       string `json:"kind"`
	Time       int64  `json:"time"` // milliseconds
	Previous   string `json:"previous"`
	Payload    string `json:"payload"` // SHA-256 of the payload's bytes
	Generation string `json:"generation"`
}

// Record is a header and, while it is kept, the payload that it names: beside
// it, or as a blob in the space of the log's name, or, when it may hold text
// that no guard has seen, as a part of a blob in the space that the run's end
// drops. Those of one message have one blob, because each write waits for the
// disk.
type Record struct {
	Header  json.RawMessage `json:"header"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Blob    bool            `json:"blob,omitempty"`
	Raw     *part           `json:"raw,omitempty"`
}

// part is where a payload stands in a blob.
type part struct {
	Blob string `json:"blob"`
	From int    `json:"from"`
	To   int    `json:"to"`
}

// startedPayload is, with interaction_opened, the one record in which a raw
// user id may stand.
type startedPayload struct {
	Principal   string   `json:"principal"`
	Pseudonym   string   `json:"pseudonym"`
	Roles       []string `json:"roles,omitempty"`
	RequestID   string   `json:"request_id"`
	Source      string   `json:"source"`
	Traceparent string   `json:"traceparent,omitempty"` // of the run's own root span
	StepID      string   `json:"step_id"`
	TraceID     string   `json:"trace_id,omitempty"`
	Generation  string   `json:"generation"`
	Variant     string   `json:"variant,omitempty"` // empty: there were none
	Contract    string   `json:"contract"`
	Call        abi.Call `json:"call"` // clock and seed of the guards' calls

	Caller *callerPayload `json:"caller,omitempty"` // it performs the tools
}

// requestPayload is a conversation, the latest turn last.
type requestPayload struct {
	Turns []abi.Turn `json:"turns"`
}

type humanPayload struct {
	Gate    string `json:"gate"`
	Outcome string `json:"outcome"`
	Value   string `json:"value,omitempty"`
}

type stepPayload struct {
	Tool   bool    `json:"tool,omitempty"` // else a function
	End    bool    `json:"end,omitempty"`
	ID     string  `json:"id"`
	Name   string  `json:"name"`
	Input  abi.Raw `json:"input,omitempty"`
	Output abi.Raw `json:"output,omitempty"`
}

func recordedStep(s Step) stepPayload {
	return stepPayload{Tool: s.Kind == StepTool, End: s.End, ID: s.ID, Name: s.Name, Input: s.Input, Output: s.Output}
}

func (p *stepPayload) step() Step {
	s := Step{Kind: StepFunction, End: p.End, ID: p.ID, Name: p.Name, Input: p.Input, Output: p.Output}
	if p.Tool {
		s.Kind = StepTool
	}
	return s
}

type saidPayload struct {
	Text string `json:"text"`
}

type releasedPayload struct {
	From int    `json:"from"`
	To   int    `json:"to"`
	Text string `json:"text"`
}

type sentPayload struct {
	Step string `json:"step"` // the tool step that is open meanwhile
}

type resultPayload struct {
	Index  int            `json:"index"` // of the call in its action
	Result abi.ToolResult `json:"result"`
	Note   CallNote       `json:"note,omitzero"`
}

// openedPayload is a question to a person. Gate says what the answer is for.
type openedPayload struct {
	ID      string  `json:"id"`
	Kind    string  `json:"kind"`
	Owner   string  `json:"owner"`
	Prompt  abi.Raw `json:"prompt"`
	Shown   string  `json:"shown_sha256"` // of the prompt's bytes
	Expires int64   `json:"expires"`      // milliseconds
	Gate    string  `json:"gate"`
	Step    string  `json:"step,omitempty"` // the function step that is open meanwhile
}

// GateVerdict is the gate of a question that a guardrail wants answered.
const GateVerdict = "verdict"

// What an answer is for.
const (
	gateAction  = "action"    // a declared action
	gateVerdict = GateVerdict // a guardrail wants a person to agree to a call
	gateAsk     = "ask"       // the workflow asks
	gateCalls   = "calls"     // the caller performs calls; the answer is their results, which no guard has seen
)

// parkedPayload is what a fold of the events does not tell.
type parkedPayload struct {
	ElapsedMS  int64 `json:"elapsed_ms"` // of running time
	ToolCalls  int   `json:"tool_calls"`
	ModelCalls int   `json:"model_calls"`
	Steps      int   `json:"steps"`
	Told       bool  `json:"budget_told,omitempty"`

	Asks []AskNote `json:"asks,omitempty"` // of guards, so far
}

// resolvedPayload ends an interaction.
type resolvedPayload struct {
	ID     string  `json:"id"`
	Answer abi.Raw `json:"answer,omitempty"` // interaction_answered
}

type claimedPayload struct {
	Replica string `json:"replica"`
}

type claimsPayload struct {
	Claims abi.Raw `json:"claims"`
}

type settledPayload struct {
	Result abi.Raw `json:"result"`
}

type endedPayload struct {
	State   State   `json:"state"`
	Failure Failure `json:"failure,omitempty"`
	Stopped bool    `json:"stopped"`          // the answer was cut
	Reason  string  `json:"reason,omitempty"` // of our own words
}

// entry is one record in memory.
type entry struct {
	Header
	raw     []byte // the header as it is written
	payload []byte // nil: dropped, or not read yet
	kept    bool   // the payload stays after the run's end
	part    *part  // where it is in the store, if it does not
}

// journal is the records of one run: those that the store has, then those that
// are not appended yet.
type journal struct {
	run        string
	generation string
	epoch      int
	now        func() time.Time
	digests    bool         // no payload stays after the end
	reached    func(string) // Options.Reached

	entries  []entry
	previous string // digest of the last header
	durable  int    // entries that the store has
	known    bool   // others may have seen it: it was read, or an append that a resume needs was tried
	tried    int    // entries that the store has after an append whose outcome is not known; 0: there is none
	id       string // of that append
	packName string // of the blob that was read last
	pack     []byte
	position int64 // of the log there
}

// add puts one record at the end. Payload must marshal; kept says that its
// payload holds nothing that a guard would have changed.
func (j *journal) add(kind string, payload any, kept bool) error {
	body, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	h := Header{
		Version: RecordVersion, Run: j.run, N: len(j.entries) + 1, Epoch: j.epoch, Kind: kind,
		Time: j.now().UnixMilli(), Previous: j.previous, Payload: digest(body), Generation: j.generation,
	}
	raw, err := json.Marshal(h)
	if err != nil {
		return err
	}
	j.previous = digest(raw)
	j.entries = append(j.entries, entry{Header: h, raw: raw, payload: body, kept: kept && (!j.digests || bare(kind))})
	return nil
}

// bare tells the records that hold no text: whose run it was and how it ended is
// known also where only digests stay.
func bare(kind string) bool { return kind == RecordRunStarted || kind == RecordRunEnded }

// digest is a SHA-256 in lower-case hex.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
