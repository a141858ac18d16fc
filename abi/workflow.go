package abi

// StepRequest is one event of a run and the state that the workflow gave with
// its last action; State is absent with the first.
type StepRequest struct {
	Call
	State Raw   `json:"state,omitempty"`
	Event Event `json:"event"`
}

// StepReply is the next state, at most MaxState bytes, and what to do.
type StepReply struct {
	State  Raw    `json:"state,omitempty"`
	Action Action `json:"action"`
}

// Types of event.
const (
	EventStart       = "start"
	EventModel       = "model"
	EventModelFailed = "model_failed"
	EventTools       = "tools"
	EventHuman       = "human"
)

// Event is what happened. Fields beside Type and the budget belong to the type
// that their comment names.
type Event struct {
	Type           string `json:"type"`
	ToolCallsLeft  int    `json:"tool_calls_left"`
	ModelCallsLeft int    `json:"model_calls_left"`

	Turns []Turn     `json:"turns,omitempty"` // start: history, then the latest user turn
	Tools []ToolInfo `json:"tools,omitempty"` // start: what a model may call

	Ref       int        `json:"ref,omitempty"`        // model: the host's number for this reply
	Text      string     `json:"text,omitempty"`       // model
	ToolCalls []ToolCall `json:"tool_calls,omitempty"` // model

	Code string `json:"code,omitempty"` // model_failed: Fail…

	Results []ToolResult `json:"results,omitempty"` // tools: in the order of the calls

	Outcome string `json:"outcome,omitempty"` // human: Human…
	Answer  string `json:"answer,omitempty"`  // human, answered: the option's value or the text
}

// Outcomes of asking a human.
const (
	HumanAnswered    = "answered"
	HumanCancelled   = "cancelled"
	HumanExpired     = "expired"
	HumanUnavailable = "unavailable"
)

// ToolInfo describes one tool to a workflow.
type ToolInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// ToolResult is what became of one call. Refused means that the host or a
// guard did not let it run; Text then says why.
type ToolResult struct {
	Ref     int    `json:"ref"` // the host's number for this result
	CallID  string `json:"call_id"`
	Name    string `json:"name"`
	Text    string `json:"text"`
	Failed  bool   `json:"failed,omitempty"`
	Refused bool   `json:"refused,omitempty"`
}

// Types of action.
const (
	ActionModel  = "model"
	ActionTools  = "tools"
	ActionAsk    = "ask"
	ActionAnswer = "answer"
	ActionFinish = "finish"
	ActionFail   = "fail"
)

// Action is what the host shall do next. A model request with stream sends its
// text to the client as it comes, so a workflow never answers what it
// streamed. Answer adds text and ends the run; finish adds none and ends it.
type Action struct {
	Type    string        `json:"type"`
	Request *ModelRequest `json:"request,omitempty"` // model
	Calls   []ToolCall    `json:"calls,omitempty"`   // tools
	Ask     *AskHuman     `json:"ask,omitempty"`     // ask
	Text    string        `json:"text,omitempty"`    // answer
	Reason  string        `json:"reason,omitempty"`  // fail: for the log only
}

// Kinds of question to a human.
const (
	AskText         = "text"
	AskRadio        = "radio"
	AskBinaryChoice = "binary_choice"
)

// AskHuman is a question that a person answers.
type AskHuman struct {
	Kind        string   `json:"kind"`
	Text        string   `json:"text"`
	Placeholder string   `json:"placeholder,omitempty"`
	Options     []Option `json:"options,omitempty"` // radio
}

// Option is one choice of a radio question.
type Option struct {
	ID          string `json:"id"`
	Label       string `json:"label"`
	Value       string `json:"value"`
	Description string `json:"description,omitempty"`
}
