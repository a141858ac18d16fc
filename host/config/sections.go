package config

import (
	"strings"
	"time"
)

// Agent is [agent]: who the agent is, and the bounds of one run. Identity needs
// a restart; workflow and bounds are policy.
type Agent struct {
	// Name is [a-z0-9-], at most 63 bytes; it names the root span
	// (<name>.invoke) and, unless OTEL_SERVICE_NAME is set, the service.
	// Default "support-tickets-agent". Another name starts new time series.
	Name string `toml:"name"`
	// Title is the name that people read, in /health. Default "Support Tickets Agent".
	Title string `toml:"title"`
	// Type is [a-z0-9-]; metric names carry it. Default "support-tickets".
	Type string `toml:"type"`
	// Description is one sentence about what the agent is for.
	Description string `toml:"description"`
	// Version is the agent's own semantic version, default "0.1.0".
	Version string `toml:"version"`
	// Workflow names the [plugins.<name>] table of the agent's loop. Default "react".
	Workflow string `toml:"workflow"`
	// MaxHistory is how many of the last messages a run sees, the latest user
	// turn included. Default 20, at least 1; 1 means that the agent remembers
	// nothing, hundreds make every model call slow and dear.
	MaxHistory int `toml:"max_history"`
	// MaxToolCalls is the budget of dispatched tool calls of one run; model
	// calls are bounded at one more. Default 20, 1 to 100. Too few and the
	// closing sentence is the answer; too many and a loop costs a lot.
	MaxToolCalls int `toml:"max_tool_calls"`
	// RequestTimeout is how long a run may be running; waiting for a person
	// does not count. Default 300s. Below a slow model's first token every
	// answer fails.
	RequestTimeout time.Duration `toml:"request_timeout"`
	// Skills are what the manifest says that the agent can do, before what its
	// plugins say of themselves. Policy, and no part of a generation's identity.
	Skills []Skill `toml:"skills"`
}

// Skill is one [[agent.skills]].
type Skill struct {
	ID          string   `toml:"id"`          // [a-z0-9_-], at most 64 bytes; one that a plugin describes too replaces the plugin's
	Name        string   `toml:"name"`        // that people read; required
	Description string   `toml:"description"` // one sentence; required
	Tags        []string `toml:"tags"`
	Examples    []string `toml:"examples"` // questions that the agent is for
}

// Server is [server]: the listener. Restart.
type Server struct {
	// Listen is host:port. Default "0.0.0.0:8000".
	Listen string `toml:"listen"`
	// KeepAlive is the silence after which a stream gets a comment. Default
	// 15s; longer than a proxy's idle limit and the proxy cuts the stream.
	KeepAlive time.Duration `toml:"keep_alive"`
	// Stall is how long a client may not read before its run is cancelled.
	// Default 30s; too short and a slow phone loses answers, too long and
	// clients that never read hold memory.
	Stall time.Duration `toml:"stall"`
	// Drain is how long open streams get at shutdown. Default 25s; longer
	// than the orchestrator's grace and the process is killed in the middle.
	Drain time.Duration `toml:"drain"`
	// MaxRuns bounds concurrent streams; beyond it clients get 503. Default
	// 256. A stream costs about 30 KiB and two goroutines, besides its run.
	MaxRuns int `toml:"max_runs"`
	// APIKey is the service key that a gateway presents. NAT_GATEWAY_API_KEY, required.
	APIKey Secret `toml:"-"`
}

// Models is [model]: time-outs, which need a restart, and the two aliases, which
// are all that a plugin can name.
type Models struct {
	Agent Model `toml:"agent"`
	Guard Model `toml:"guard"`
	// ConnectTimeout bounds one attempt to connect. Default 5s.
	ConnectTimeout time.Duration `toml:"connect_timeout"`
	// FirstTokenTimeout bounds the wait for the first chunk of a stream, or for
	// the whole of a reply that is not streamed. Default 60s; a local model
	// that is still being loaded needs it all.
	FirstTokenTimeout time.Duration `toml:"first_token_timeout"`
	// ChunkTimeout bounds the silence between two chunks. Default 30s.
	ChunkTimeout time.Duration `toml:"chunk_timeout"`
}

// Model is [model.agent] or [model.guard]: an OpenAI-compatible Chat
// Completions endpoint. The address needs a restart; the rest is policy.
type Model struct {
	// BaseURL is the address before /chat/completions. Default
	// "http://host.docker.internal:11434/v1"; the guard's default is the agent's.
	BaseURL string `toml:"base_url"`
	// Name of the model. Default "qwen3:8b"; the guard does not inherit the agent's.
	Name string `toml:"name"`
	// ReasoningEffort goes into requests as it is; empty (the default) leaves
	// the field out, and "none" is a value.
	ReasoningEffort string `toml:"reasoning_effort"`
	// Temperature of requests that name none. Default 0 for the agent, 0.001
	// for the guard; 0 to 2.
	Temperature float64 `toml:"temperature"`
	// MaxTokens of requests that name none. Default 4096 for the agent, 4 for
	// the guard. Too few and answers end in the middle of a sentence.
	MaxTokens int `toml:"max_tokens"`
	// APIKey is LLM_API_KEY, default "ollama". A guard at another address gets
	// LLM_GUARD_API_KEY and never the agent's key.
	APIKey Secret `toml:"-"`
}

// Tools is [tools].
type Tools struct {
	MCP MCP `toml:"mcp"`
}

// MCP is [tools.mcp]: the one server whose tools the agent may use. The list
// and the overrides are policy; the rest needs a restart.
type MCP struct {
	// URL of the streamable HTTP endpoint. Default "http://mcp-server:8080/mcp".
	URL string `toml:"url"`
	// FunctionGroup stands before a tool's name in steps: <group>__<tool>.
	// Default "tickets_mcp".
	FunctionGroup string `toml:"function_group"`
	// Include is the closed list of tools. A tool that the server offers and
	// that is not listed does not exist for the model; a listed tool that the
	// server lacks, or that changes state, refuses the start. Required.
	Include []string `toml:"include"`
	// CallTimeout bounds one tool call. Default 30s.
	CallTimeout time.Duration `toml:"call_timeout"`
	// ConnectAttempts at start, ConnectInterval apart. Default 15 and 2s.
	ConnectAttempts int           `toml:"connect_attempts"`
	ConnectInterval time.Duration `toml:"connect_interval"`
	// Overrides replace what the server says about a tool.
	Overrides map[string]Override `toml:"overrides"`
	// APIKey is MCP_API_KEY, required.
	APIKey Secret `toml:"-"`
}

// Override is [tools.mcp.overrides.<tool>].
type Override struct {
	// Description is what models read in place of the server's text. Required.
	Description string `toml:"description"`
}

// Guard is [guard]: the host's own part of guarding, beside the plugins. Policy.
type Guard struct {
	// InputDecision and OutputDecision name the decision events. Defaults
	// "guardrail_input_self_check_decision" and
	// "guardrail_output_regex_pii_decision"; consumers look for the prefixes
	// guardrail_input_ and guardrail_output_ and the suffix _decision.
	InputDecision  string `toml:"input_decision"`
	OutputDecision string `toml:"output_decision"`
	// BlockMessage is the refusal when an input guard failed and that blocks.
	BlockMessage string `toml:"block_message"`
	// CutNotice stands in place of the rest of an answer when an output guard
	// failed and that blocks.
	CutNotice string `toml:"cut_notice"`
	// OversizeNotice stands in place of the rest of an answer that is too long.
	OversizeNotice string `toml:"oversize_notice"`
	// MaxAnswerChars bounds an answer. Default 200000, at least 1024.
	MaxAnswerChars int `toml:"max_answer_chars"`
	// AskTimeout bounds one model call of a guardrail. Default 20s; it stands
	// before every answer. Too short and a busy model refuses everybody.
	AskTimeout time.Duration `toml:"ask_timeout"`
}

// Run is [run]: bounds of all runs together. Restart.
type Run struct {
	// KeepEvents is how long the events of a run that goes on without a
	// listener, or has ended, can be read again. Default 15m. Too short and a
	// client that comes back finds nothing; too long and the store grows.
	KeepEvents time.Duration `toml:"keep_events"`
	// MaxPerUser bounds the runs that one user has at once, those that wait
	// for a person included; beyond it the user gets 503. Default 64, at least
	// 1. One user can then not take all of [server] max_runs.
	MaxPerUser int `toml:"max_per_user"`
}

// Telemetry is [telemetry]: what may stand on spans. Where they go is said by
// the standard OTEL_ variables, which host/telemetry/export reads. Restart.
type Telemetry struct {
	// CaptureContent puts the question, redacted, and the released answer on
	// spans. Default true.
	CaptureContent bool `toml:"capture_content"`
	// ContentMaxChars bounds each of them. Default 65536, at least 256.
	ContentMaxChars int `toml:"content_max_chars"`
	// GuardContent puts the question, redacted, on guardrail spans. Default true.
	GuardContent bool `toml:"guard_content"`
	// GuardMaxChars bounds it. Default 16384, at least 256.
	GuardMaxChars int `toml:"guard_max_chars"`
	// UserID puts a pseudonym of the user on the root span. Default false.
	UserID bool `toml:"user_id"`
}

// Admin is [admin]: the listener for operators, off without a key. Restart.
type Admin struct {
	// Listen is host:port, or "unix:" and the path of a socket, which starts
	// from the folder of agent.toml. Default "127.0.0.1:8001".
	Listen string `toml:"listen"`
	// APIKey is WEIR_ADMIN_KEY, at least 24 characters.
	APIKey Secret `toml:"-"`
}

const unixPrefix = "unix:"

func (a *Admin) socket() bool { return strings.HasPrefix(a.Listen, unixPrefix) }

// Network returns what package net calls the address: "tcp" and host:port, or
// "unix" and a path.
func (a *Admin) Network() (network, address string) {
	if path, ok := strings.CutPrefix(a.Listen, unixPrefix); ok {
		return "unix", path
	}
	return "tcp", a.Listen
}

// local tells whether only this machine can reach the address.
func (a *Admin) local() bool { return a.socket() || loopback(a.Listen) }

// Reload is [reload]: when the files of the policy are read again. Restart.
type Reload struct {
	// Watch reads them when they change. Default true; without it only
	// SIGHUP and `weir admin reload` do.
	Watch bool `toml:"watch"`
	// Settle is how long the files must be quiet before they are read. Default
	// 500ms. Too short and files that are being written are read and refused,
	// which costs nothing but a line in the log.
	Settle time.Duration `toml:"settle"`
}

// Registry is [registry]: who is told that the agent is there. Restart.
type Registry struct {
	// URL is the base address of the platform's agent gateway. Empty, the
	// default, tells nobody.
	URL string `toml:"url"`
	// SelfURL is where the gateway finds this agent. Default
	// "http://<agent.name>.agents.svc.cluster.local".
	SelfURL string `toml:"self_url"`
	// Attempts is how often a start tries, 5s apart, 3 to 1000. Default 10. The
	// gateway reads the manifest through the agent's service, which answers from
	// the first readiness probe on: too few and they are over by then.
	Attempts int `toml:"attempts"`
}

// Build is what the binary's builder says.
type Build struct {
	Commit string // AGENT_BUILD_COMMIT, default "unknown"
}
