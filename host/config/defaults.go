package config

import (
	"strings"
	"time"
)

// Texts that the contract fixes as defaults.
const (
	defaultBlockMessage   = "I'm sorry, I can't help with that request."
	defaultCutNotice      = "I can't share the rest of that response because it may contain sensitive information."
	defaultOversizeNotice = "The response was too large to safely apply output protection and the rest was withheld."
)

// defaults is the one place of every default. What depends on another key is
// filled in by resolve.
func defaults() *Config {
	return &Config{
		Agent: Agent{
			Name:           "support-tickets-agent",
			Title:          "Support Tickets Agent",
			Type:           "support-tickets",
			Description:    "Answers questions about support tickets.",
			Version:        "0.1.0",
			Workflow:       "react",
			MaxHistory:     20,
			MaxToolCalls:   20,
			RequestTimeout: 300 * time.Second,
		},
		Server: Server{
			Listen:    "0.0.0.0:8000",
			KeepAlive: 15 * time.Second,
			Stall:     30 * time.Second,
			Drain:     25 * time.Second,
			MaxRuns:   256,
		},
		Model: Models{
			Agent:             Model{Name: defaultModel, MaxTokens: 4096},
			Guard:             Model{Name: defaultModel, Temperature: 0.001, MaxTokens: 4},
			ConnectTimeout:    5 * time.Second,
			FirstTokenTimeout: 60 * time.Second,
			ChunkTimeout:      30 * time.Second,
		},
		Tools: Tools{MCP: MCP{
			URL:             "http://mcp-server:8080/mcp",
			FunctionGroup:   "tickets_mcp",
			CallTimeout:     30 * time.Second,
			ConnectAttempts: 15,
			ConnectInterval: 2 * time.Second,
		}},
		Guard: Guard{
			InputDecision:  "guardrail_input_self_check_decision",
			OutputDecision: "guardrail_output_regex_pii_decision",
			BlockMessage:   defaultBlockMessage,
			CutNotice:      defaultCutNotice,
			OversizeNotice: defaultOversizeNotice,
			MaxAnswerChars: 200000,
			AskTimeout:     20 * time.Second,
		},
		Plugins: Plugins{
			Dir:  "plugins/dist",
			Lock: LockWarn,
			Defaults: PluginDefaults{
				OnError: OnErrorBlock,
				Mode:    ModeEnforce,
				Limits: Limits{
					Memory:       64 * MiB,
					Reply:        4 * MiB,
					SetupTimeout: 10 * time.Second,
					Wait:         5 * time.Second,
					Fuel:         4_000_000_000,
				},
			},
		},
		Approvals: Approvals{OnDisconnect: DisconnectCancel, MaxPending: 1024, Timeout: 600 * time.Second},
		Run:       Run{KeepEvents: 15 * time.Minute, MaxPerUser: 64},
		Store: Store{
			Backend:   BackendMemory,
			KeepEnded: 100,
			Dir:       "state",
			Replicas:  1,
			Retention: 720 * time.Hour,
			Content:   ContentFull,
			MaxBytes:  16 * GiB,
		},
		Telemetry: Telemetry{
			CaptureContent:  true,
			ContentMaxChars: 65536,
			GuardContent:    true,
			GuardMaxChars:   16384,
		},
		Admin:    Admin{Listen: "127.0.0.1:8001"},
		Reload:   Reload{Watch: true, Settle: 500 * time.Millisecond},
		Registry: Registry{Attempts: 10},
		Contract: Contract{Turn: Turn{Infer: InferOff, Identity: IdentityIgnore, AnswerTimeout: 25 * time.Second, SessionTimeout: 10 * time.Minute}},
		Build:    Build{Commit: "unknown"},
	}
}

const (
	defaultModel    = "qwen3:8b"
	defaultModelURL = "http://host.docker.internal:11434/v1"
	defaultModelKey = "ollama"
)

// resolve fills in what follows from other keys.
func (c *Config) resolve() {
	agent, guard := &c.Model.Agent, &c.Model.Guard
	if agent.BaseURL == "" {
		agent.BaseURL = defaultModelURL
	}
	if !agent.APIKey.Set() {
		agent.APIKey = NewSecret(defaultModelKey)
	}
	if guard.BaseURL == "" {
		guard.BaseURL = agent.BaseURL
	}
	if !guard.APIKey.Set() {
		guard.APIKey = NewSecret(defaultModelKey)
		// A key is for one address: a guard elsewhere must not be sent the agent's.
		if guard.BaseURL == agent.BaseURL {
			guard.APIKey = agent.APIKey
		}
	}
	if c.Registry.SelfURL == "" {
		c.Registry.SelfURL = "http://" + c.Agent.Name + ".agents.svc.cluster.local"
	}
	c.Plugins.resolve(c)
	for _, path := range []*string{&c.Store.Credentials, &c.Store.TLSCA, &c.Store.TLSCert, &c.Store.TLSKey,
		&c.Contract.Turn.Scenario, &c.Contract.Turn.TrustRoot} {
		*path = c.resolvePath(*path)
	}
	if path, ok := strings.CutPrefix(c.Admin.Listen, unixPrefix); ok && path != "" {
		c.Admin.Listen = unixPrefix + c.resolvePath(path)
	}
}
