package abi

// Model aliases: a guest never names an address, a key or a real model.
const (
	ModelAgent = "agent"
	ModelGuard = "guard"
)

// Message roles.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// ModelRequest is what a plugin asks a model: messages, or one of its prompts
// filled with variables, which is sent as a single user message.
type ModelRequest struct {
	Model       string     `json:"model"` // ModelAgent or ModelGuard
	Messages    []Message  `json:"messages,omitempty"`
	Prompt      *PromptUse `json:"prompt,omitempty"`
	Temperature *float64   `json:"temperature,omitempty"` // nil: the alias's own
	MaxTokens   int        `json:"max_tokens,omitempty"`  // 0: the alias's own
	Tools       *ToolSet   `json:"tools,omitempty"`       // nil: none
	Stream      bool       `json:"stream,omitempty"`
}

// Message is one message to a model. Exactly one of three forms: Role with
// Content (and, for an assistant, ToolCalls; for a tool, ToolCallID); Ref, a
// model reply or tool result that the host holds; or Turn, a turn of the start
// event, counted from 1. The last two keep bulk text out of the guest.
type Message struct {
	Role       string     `json:"role,omitempty"`
	Content    string     `json:"content,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	Ref        int        `json:"ref,omitempty"`
	Turn       int        `json:"turn,omitempty"`
}

// PromptUse names a prompt of the plugin and the values of its {{ name }}
// placeholders.
type PromptUse struct {
	Name string `json:"name"`
	Vars []Var  `json:"vars,omitempty"`
}

// Var is one placeholder's value.
type Var struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ToolSet is the tools that a model may call: on the wire the string "all" or
// an array of names.
type ToolSet struct {
	All   bool
	Names []string
}

// ToolCall is one call as the model proposed it. Arguments is the model's own
// text, which need not be JSON.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Codes of a model call that brought no reply.
const (
	FailBudget      = "budget" // workflow only: the model call was not performed
	FailUnavailable = "unavailable"
	FailTimeout     = "timeout"
	FailBadReply    = "bad_reply"
)

// AskReply is the answer to an ask_model verdict: Text, or Failed with the
// code. A model's failure is never the plugin's failure.
type AskReply struct {
	Text   string `json:"text,omitempty"`
	Failed string `json:"failed,omitempty"`
}
