package run

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"weir/abi"
	"weir/abi/strictjson"
)

// Recording is what a replay of a run needs beside the records that stay after
// its end: what the workflow was given, every text in the form that a guard let
// pass. What a guard masked, cut or withheld is not in it, only how long it was.
//
// It is one record at the end and not one an event: a header costs more than
// most of what stands here, and how the guards change a reply is known for sure
// only when the stream has ended.
type Recording struct {
	Parts  []Part     `json:"parts"`
	Tools  []ToolName `json:"tools,omitempty"`  // that the host, or the caller, offered
	Masked bool       `json:"masked,omitempty"` // the conversation's display form is not what the guards saw
	Asks   []AskNote  `json:"asks,omitempty"`   // model calls of guards
	Heard  []Heard    `json:"heard,omitempty"`
	Edits  []Edit     `json:"edits,omitempty"` // of the released text
	Stop   *Stop      `json:"stop,omitempty"`
	Own    bool       `json:"own_stop,omitempty"` // the cut lies in what the workflow itself answered
}

// ToolName is a tool without what a model reads of it.
type ToolName struct {
	Name     string `json:"name"`
	StepName string `json:"step_name"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Heard is one event as the workflow was given it, guarded.
type Heard struct {
	abi.Call
	Type string `json:"type"`

	Asked   string      `json:"asked,omitempty"`   // digest of the model request
	Said    int         `json:"said,omitempty"`    // bytes that went into the stream, at most up to its cut
	Text    string      `json:"text,omitempty"`    // of a reply that did not go into the stream
	Masked  bool        `json:"masked,omitempty"`  // Text is not what the workflow saw
	Finish  string      `json:"finish,omitempty"`  // of a reply
	Code    string      `json:"code,omitempty"`    // of a call that failed
	Stopped bool        `json:"stopped,omitempty"` // the answer was cut in this reply
	Calls   []HeardCall `json:"calls,omitempty"`   // of a reply; of tools, where the workflow made other calls

	Results []HeardResult `json:"results,omitempty"`

	InputTokens  int `json:"input_tokens,omitempty"` // of a reply, where the provider tells
	OutputTokens int `json:"output_tokens,omitempty"`
}

// HeardCall is a proposed call. Arguments are JSON, or a string with the text of
// arguments that are none.
type HeardCall struct {
	Name       string  `json:"name"`
	Arguments  abi.Raw `json:"arguments"`
	Exact      string  `json:"exact,omitempty"` // the same as a model wrote it, where that is another text and nothing is masked
	Masked     bool    `json:"masked,omitempty"`
	Unreadable bool    `json:"unreadable,omitempty"`
}

// HeardResult is what came of a call. With a step its text is that step's output.
type HeardResult struct {
	CallNote
	Text    string `json:"text,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
	Refused bool   `json:"refused,omitempty"`
}

// CallNote is what the engine knows of a call and the workflow does not.
type CallNote struct {
	Step   string `json:"step,omitempty"`
	Why    string `json:"why,omitempty"`    // it was refused or withheld
	Asked  bool   `json:"asked,omitempty"`  // a person had to agree
	Masked bool   `json:"masked,omitempty"` // the step's output is not what the workflow saw
}

// Why a call was refused, beside the codes of the host's own policy.
const (
	WhyUnreadable = "not_readable"
	WhySchema     = "schema"
	WhyBudget     = "budget"
	WhyGuard      = "guard"
	WhyApproval   = "approval" // a person had to agree and could not be asked
	WhyPerson     = "person"   // who did not agree
	WhyProposal   = "proposal" // of a declared action: it proposes nothing that could be signed
	WhyWithheld   = "withheld"
)

// AskNote is one model call of a guard's. Reply is one of the words that
// classifiers answer; any other text is not kept.
type AskNote struct {
	Plugin string `json:"plugin"`
	Asked  string `json:"asked"`
	Reply  string `json:"reply,omitempty"`
	Failed string `json:"failed,omitempty"`
}

// note is the same of an event.
type note struct {
	Asked   string         `json:"asked,omitempty"`
	Said    int            `json:"said,omitempty"`
	Finish  string         `json:"finish,omitempty"`
	Stopped bool           `json:"stopped,omitempty"`
	Calls   []CallNote     `json:"calls,omitempty"`
	Other   []abi.ToolCall `json:"other,omitempty"` // that the workflow made instead of the reply's

	InputTokens  int `json:"input_tokens,omitempty"`
	OutputTokens int `json:"output_tokens,omitempty"`
}

// IsZero is for encoding/json.
func (n note) IsZero() bool {
	return n.Asked == "" && n.Said == 0 && n.Finish == "" && !n.Stopped && n.Calls == nil && n.Other == nil &&
		n.InputTokens == 0 && n.OutputTokens == 0
}

func (r *run) hear(in input) { r.heard = append(r.heard, in) }

// noteCalls remembers calls that are not those of the latest reply.
func (r *run) noteCalls(calls []abi.ToolCall) {
	for _, in := range slices.Backward(r.heard) {
		if in.Event.Type == abi.EventModel {
			if sameCalls(calls, in.Event.ToolCalls) {
				return
			}
			break
		}
	}
	r.note.Other = calls
}

// asked remembers what became of a guard's model call. A guard in monitor mode
// may ask when the run has ended.
func (r *run) asked(call *ModelCall, reply abi.AskReply) {
	r.asksMu.Lock()
	defer r.asksMu.Unlock()
	r.asks = append(r.asks, AskNote{Plugin: call.Plugin, Asked: call.Asked, Reply: verdictWord(reply.Text), Failed: reply.Failed})
}

// allAsked are the model calls of guards that enforce.
func (r *run) allAsked() []AskNote {
	r.asksMu.Lock()
	defer r.asksMu.Unlock()
	var out []AskNote
	for _, a := range r.asks {
		if slices.ContainsFunc(r.policy.Parts(), func(p Part) bool { return p.Name == a.Plugin }) {
			out = append(out, a)
		}
	}
	return out
}

// verdictWord returns a reply that is a classifier's word, which says nothing of
// what was classified, and else nothing.
func verdictWord(text string) string {
	text = strings.TrimSpace(text)
	switch strings.ToLower(strings.TrimRight(text, ".!")) {
	case "yes", "no", "safe", "unsafe", "allow", "allowed", "block", "blocked", "true", "false", "pass", "fail", "ok":
		return text
	}
	return ""
}

// knownFinish returns a finish reason of the field's, not a provider's own text.
func knownFinish(reason string) string {
	switch reason {
	case "stop", "length", "tool_calls", "content_filter", "function_call":
		return reason
	}
	return ""
}

// askedDigest names a request as the plugin put it: with the numbers of texts
// that the host holds, not their content.
func (r *run) askedDigest(plugin string, req *abi.ModelRequest, tools []Tool) string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	prompt := ""
	if req.Prompt != nil {
		prompt, _ = r.policy.Prompt(plugin, req.Prompt.Name)
	}
	body, err := json.Marshal(struct {
		Request *abi.ModelRequest
		Tools   []string
		Prompt  string
	}{req, names, prompt})
	if err != nil {
		return ""
	}
	return digest(body)[:16]
}

// validLen is the length of text as the sink sees it, which makes a character
// of every byte that begins none.
func validLen(text string) int {
	if utf8.ValidString(text) {
		return len(text)
	}
	return len(string([]rune(text)))
}

// recordTimeout bounds what the guards have to redact for the recording.
const recordTimeout = 5 * time.Second

// recording is the run as it is kept. The run's guards still work.
func (r *run) recording() *Recording {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.client), recordTimeout)
	defer cancel()
	out := &Recording{Parts: r.policy.Parts(), Asks: r.allAsked(), Edits: r.verdict.Edits, Stop: r.verdict.Stop}
	if r.state == Blocked || r.sink == nil {
		return out
	}
	out.Masked = r.masked
	for _, t := range r.tools.List() {
		out.Tools = append(out.Tools, ToolName{Name: t.Name, StepName: t.StepName, ReadOnly: t.ReadOnly})
	}
	said, all := 0, 0
	for _, in := range r.heard {
		h := r.guardedEvent(ctx, in)
		all += h.Said
		if stop := r.verdict.Stop; stop != nil { // how much stood behind the cut is nobody's business
			until := max(0, min(h.Said, stop.At-said))
			if until < h.Said {
				h.OutputTokens = 0
			}
			h.Said = until
		}
		said += h.Said
		out.Heard = append(out.Heard, h)
	}
	out.Own = out.Stop != nil && out.Stop.At >= all
	return out
}

func (r *run) guardedEvent(ctx context.Context, in input) Heard {
	e, n := in.Event, in.Note
	h := Heard{Call: in.Call, Type: e.Type, Asked: n.Asked, Said: n.Said, Finish: n.Finish, Code: e.Code, Stopped: n.Stopped,
		InputTokens: n.InputTokens, OutputTokens: n.OutputTokens}
	if e.Text != "" && n.Said == 0 {
		h.Text = r.display1(ctx, e.Text)
		h.Masked = h.Text != e.Text
	}
	calls := e.ToolCalls
	if e.Type == abi.EventTools {
		calls = n.Other
	}
	for _, c := range calls {
		h.Calls = append(h.Calls, r.guardedCall(ctx, c))
	}
	for i, result := range e.Results {
		out := HeardResult{Failed: result.Failed, Refused: result.Refused}
		if i < len(n.Calls) {
			out.CallNote = n.Calls[i]
		}
		if out.Step == "" {
			out.Text = r.display1(ctx, result.Text)
			if strings.ContainsRune(out.Text, '\\') { // what it quotes may hide a secret from the guards
				out.Text = refusedPrefix + withheld
			}
			out.Masked = out.Text != result.Text
		}
		h.Results = append(h.Results, out)
	}
	return h
}

func (r *run) guardedCall(ctx context.Context, c abi.ToolCall) HeardCall {
	out := HeardCall{Name: r.display1(ctx, c.Name)}
	args := abi.Raw(c.Arguments)
	if strictjson.Valid(args) != nil {
		out.Unreadable, args = true, jsonString(c.Arguments)
		if disguised(c.Arguments) {
			out.Masked, args = true, jsonString(withheld)
		}
	}
	out.Arguments = r.guards.Display(ctx, args)
	out.Masked = out.Masked || !same(args, out.Arguments) || out.Name != c.Name
	if !out.Masked && !out.Unreadable && string(out.Arguments) != c.Arguments {
		out.Exact = c.Arguments
	}
	return out
}

// display1 is redacted, also when the run's context has ended.
func (r *run) display1(ctx context.Context, text string) string {
	return stringOf(r.guards.Display(ctx, jsonString(text)))
}
