package run

import (
	"context"
	"iter"
	"time"

	"weir/abi"
)

// Policy is one generation as a run sees it. A run keeps the policy that it
// began with. Methods may be called concurrently by different runs.
type Policy interface {
	// Generation is the identity of everything that defines behaviour, 64 hex digits.
	Generation() string
	// Step calls the workflow plugin. Its error is a failure of the plugin.
	Step(ctx context.Context, req *abi.StepRequest) (*abi.StepReply, error)
	// Workflow is the name of the workflow plugin.
	Workflow() string
	// Prompt returns the text of one of a plugin's prompts.
	Prompt(plugin, name string) (string, bool)
	// Parts are what decides in a run: the workflow, then the guards that
	// enforce, in the order of the chain, then the settings beside them.
	Parts() []Part
	// Guards begins the guarding of one run, which lasts until ctx ends or the
	// sink has finished.
	Guards(ctx context.Context, s GuardSession) Guards
}

// Part is one part of a policy. Two runs whose parts have the same identity were
// judged by the same function there.
type Part struct {
	Name   string `json:"name"`
	ID     string `json:"id"`     // of everything that defines it, 16 hex digits
	Stages string `json:"stages"` // in which it takes part, one letter each
}

// Stages of a part.
const (
	StageWorkflow   = "w"
	StageInput      = "i"
	StageToolCall   = "c"
	StageToolResult = "r"
	StageOutput     = "o"
	StageApproval   = "a"
)

// PartApprovals is the part that says whether a person could be asked, "on" or
// "off".
const PartApprovals = "[approvals]"

// GuardSession is what guards need to know of the run that they guard.
type GuardSession struct {
	Roles []string
	// Call is the clock and the seed of every call in this run: one for all, so
	// that what a guard answers depends on the text alone and not on its chunks.
	Call abi.Call
	// Ask performs an ask_model verdict of the guard with that name.
	Ask func(ctx context.Context, guard string, req *abi.ModelRequest) abi.AskReply
	// People says that a person can be asked, so require_approval is no block.
	People bool
	// Release receives text for the client, in order, from one goroutine at a
	// time. It blocks while the client does not read.
	Release func(text string)
}

// Guards is the guardrail chain of one run.
type Guards interface {
	CheckInput(ctx context.Context, turns []abi.Turn) (InputVerdict, error)
	CheckToolCall(ctx context.Context, call ToolCheck) (ToolVerdict, error)
	CheckToolResult(ctx context.Context, call ToolCheck, result string, failed bool) (ToolVerdict, error)
	// Display returns value, a JSON value for people's eyes, with every string
	// in it redacted by the output guards.
	Display(ctx context.Context, value abi.Raw) abi.Raw
	// Sink is the run's one guarded stream.
	Sink() Sink
}

// Sink is the guarded way to the client. Push never blocks on the client or on
// a guard.
type Sink interface {
	Push(text string)
	// Sync waits until everything that was pushed has been looked at and what
	// it allows has been released.
	Sync(ctx context.Context) error
	// Cut is closed once the answer is cut for good; later pushes are dropped.
	Cut() <-chan struct{}
	// Finish decides the rest and returns the output decision. It may be
	// called once; no text is released after it.
	Finish(ctx context.Context) OutputVerdict
}

// InputVerdict is what the input stage decided.
type InputVerdict struct {
	Blocked  bool
	Message  string  // for the user, when blocked
	Decision abi.Raw // the decision event's output
}

// OutputVerdict is what the output stage decided about the whole answer.
type OutputVerdict struct {
	Cut      bool
	RawChars int     // characters that the model and the workflow produced
	Decision abi.Raw // the decision event's output
	Edits    []Edit  // that were applied, in order
	Stop     *Stop   // where the answer was cut; nil: it was not
}

// Edit is an edit of a guard's, without the text that it replaced. Offsets are
// bytes of all text that went into the sink.
type Edit struct {
	Start   int    `json:"start"`
	End     int    `json:"end"`
	Replace string `json:"replace"`
	Label   string `json:"label"`
	Guard   string `json:"guard"`
}

// Stop is where a guard ended the answer, or its length did: then Guard is empty.
type Stop struct {
	At     int    `json:"at"`
	Notice string `json:"notice"`
	Label  string `json:"label,omitempty"`
	Guard  string `json:"guard,omitempty"`
}

// ToolCheck is a proposed call that passed the host's own policy.
type ToolCheck struct {
	Tool      string
	Arguments abi.Raw
	ReadOnly  bool
	Text      string // the latest user turn
}

// ToolVerdict is what the guards say of a call or of a result. Decision is nil
// when every guard allowed.
type ToolVerdict struct {
	Blocked  bool
	Approve  bool   // a person has to agree to the call; never together with Blocked
	Message  string // for that person; empty: the engine's own words
	Reason   string // for the model, after "refused by policy: "
	Decision abi.Raw
}

// Model calls a language model.
type Model interface {
	// Name is the real model's name behind an alias, for spans.
	Name(alias string) string
	// Complete sends one request. onText receives text deltas of a streamed
	// request as they arrive; nil when nobody wants them. An error carries one
	// of the codes unavailable, timeout and bad_reply; its text goes to the log
	// and holds nothing that the provider said.
	Complete(ctx context.Context, req *ModelCall, onText func(string)) (*ModelReply, error)
}

// ModelCall is a model request with everything resolved: messages in full and
// tools with their schemas.
type ModelCall struct {
	Alias       string // abi.ModelAgent or abi.ModelGuard
	Plugin      string // which asks
	Asked       string // digest of the request as the plugin put it, 16 hex digits
	Messages    []abi.Message
	Tools       []Tool
	Temperature *float64
	MaxTokens   int
	Stream      bool
}

// ModelReply is one complete reply. Token counts are 0 when nobody told them.
type ModelReply struct {
	Text         string
	ToolCalls    []abi.ToolCall
	FinishReason string
	InputTokens  int
	OutputTokens int
}

// Tool is one tool that the operator exposed.
type Tool struct {
	Name        string
	StepName    string // as steps show it: group__name
	Description string
	Schema      abi.Raw // JSON Schema of the arguments
	ReadOnly    bool
}

// Tools is the closed registry of tools that the host performs.
type Tools interface {
	// List returns the tools in the order in which models see them.
	List() []Tool
	// Parse finds the tool and reads the arguments' text. Its error text is for
	// the model; such a call does not count against the budget.
	Parse(name, arguments string) (Tool, abi.Raw, error)
	// Validate holds arguments against the tool's schema. Its error text is
	// for the model.
	Validate(name string, arguments abi.Raw) error
	// Call performs the call. Failed marks a result that the tool itself calls
	// an error; an error's text is for the model too.
	Call(ctx context.Context, name string, arguments abi.Raw) (text string, failed bool, err error)
}

// People is how a person is asked and what a person may authorise, as a policy
// says. All of it but Execute is a function of its arguments alone, so a run
// that is resumed gets what it got before.
type People interface {
	// Declared are the tools whose calls a person authorises, as models see them.
	Declared() []Tool
	// Propose reads a proposed call of a declared tool. The text of its error
	// is for the model; with code [CodeProposal] the call could be read and
	// proposes nothing.
	Propose(name string, arguments abi.Raw) (Proposal, error)
	// Question is a workflow's question as people see it.
	Question(ask *abi.AskHuman) (Prompt, error)
	// Agreement asks whether a call may be made, with these very arguments.
	Agreement(tool string, arguments abi.Raw, message string) (Prompt, error)
	// Execute carries an authorised change out, once. Its result is for the
	// model. After a crash settle finds out what had become of it instead.
	Execute(ctx context.Context, claims abi.Raw, settle bool) abi.Raw
}

// Proposal is one proposed change on its way through a person's hands.
type Proposal interface {
	// Summary is text of the model's that the prompts show; a proposal with
	// the guarded form shows that instead.
	Summary() string
	WithSummary(guarded string) Proposal
	// Signed are values of the model's that are signed as they are shown.
	Signed() []string
	// NotApplied is the result object of a proposal that nobody was asked about.
	NotApplied(message string) abi.Raw
	// Next says what comes next after these answers.
	Next(who Authority, answers []abi.Raw) ProposalStep
}

// CodeProposal marks a call that fits its schema and proposes nothing.
const CodeProposal = "proposal"

// Authority is who a change is made for. Nonce and Now go into its claims.
type Authority struct {
	Actor     string
	RequestID string
	Gateway   bool // the request id came from the gateway
	Nonce     string
	Now       time.Time
}

// ProposalStep is exactly one of: a prompt to show, a result for the model,
// claims to execute. Outcome is a code of why there is a result already.
type ProposalStep struct {
	Prompt  *Prompt
	Result  abi.Raw
	Claims  abi.Raw
	Outcome string
}

// Prompt is a question as clients see it.
type Prompt struct {
	Kind string // the kind of answer that it takes
	JSON abi.Raw
}

// Log is where runs are kept. See package store for the exact promises of all
// of it.
type Log interface {
	// Append adds records as one message behind position expected. The id is
	// random and the append's own; a lost acknowledgement is settled by it.
	// Conflict means that somebody else wrote there.
	Append(ctx context.Context, log string, expected int64, id string, records [][]byte) (int64, error)
	// Read yields the messages after position from.
	Read(ctx context.Context, log string, from int64) iter.Seq2[Message, error]
	// End says that nothing will be appended any more.
	End(ctx context.Context, log string) error
	// Complete writes a log that nobody but the caller has ever known and to
	// which nothing will be appended, as one message. It may reach the disk a
	// moment later.
	Complete(ctx context.Context, log, id string, records [][]byte) error
	// PutBlob keeps data beside the log, by its SHA-256.
	PutBlob(ctx context.Context, space string, data []byte) (string, error)
	Blob(ctx context.Context, space, digest string) ([]byte, error)
	// DropSpace makes every blob of a space unreadable.
	DropSpace(ctx context.Context, space string) error
}

// Message is what one append wrote.
type Message struct {
	Position int64
	Records  [][]byte
}

// Observer shows a run to its client. Calls come from one goroutine at a time,
// in the order of the contract; they may block while the client does not read,
// and must return once the run's context has ended.
type Observer interface {
	Started(Info)
	Step(Step)
	Text(string)
	// Asked shows a question to a person. It can be answered already.
	Asked(Interaction)
	// Failed reports the one failure of a run, before Ended.
	Failed(Failure)
	Ended(Info)
}

// Info names a run.
type Info struct {
	RunID      string // UUIDv4; also the execution id
	StepID     string // UUIDv4 of the workflow step, parent of all others
	TraceID    string // 32 hex digits, empty without a tracer
	RequestID  string
	Generation string
	Variant    string // empty: there are none
}

// Interaction is a question to a person, and who may answer it until when.
type Interaction struct {
	Run     string
	ID      string // UUIDv4
	Kind    string
	Prompt  abi.Raw // as it is shown
	Owner   string  // compared as it came; never shown
	Expires time.Time
}

// Step is the start or the end of a tool call or of a function such as a
// guardrail's decision.
type Step struct {
	Kind   StepKind
	End    bool
	ID     string // the same for start and end
	Name   string
	Input  abi.Raw
	Output abi.Raw // end only
}

// StepKind tells tools from functions.
type StepKind uint8

// Kinds of step.
const (
	StepTool StepKind = iota
	StepFunction
)

// Failure says why a run failed, as far as a client may know.
type Failure uint8

// Kinds of failure.
const (
	FailureRun   Failure = iota // anything but the provider
	FailureModel                // the model provider failed to answer
)
