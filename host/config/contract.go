package config

import (
	"reflect"
	"regexp"
	"slices"
	"time"

	"weir/abi/strictjson"
)

// Contract is [contract]: wire contracts beside the agent service. Restart.
type Contract struct {
	Turn Turn `toml:"turn"`
}

// How a request of the turn contract without a session of its own is placed.
const (
	InferOff    = "off"
	InferSingle = "single"
)

// What is done about a request's identity_binding.
const (
	IdentityIgnore  = "ignore"
	IdentityVerify  = "verify"
	IdentityRequire = "require"
)

// Turn is [contract.turn]: the agent driven turn by turn by a caller that
// performs the tools, such as AgentV's harness. Restart.
type Turn struct {
	// Enabled answers POST /execute_task on the main listener. Default false.
	// `weir agentv stdio` and `weir agentv socket` do not ask.
	Enabled bool `toml:"enabled"`
	// Listen is host:port on loopback of a second listener, which asks for no
	// key: AgentV's harness sends none. Default empty: there is none.
	Listen string `toml:"listen"`
	// Scenario is the path of an AES scenario whose tools are the caller's; or
	// they stand in Tools.
	Scenario string     `toml:"scenario"`
	Tools    []TurnTool `toml:"tools"`
	// Aliases are other members that may hold the task's text. Default none.
	Aliases []string `toml:"aliases"`
	// AcceptAuto takes "Auto-approved …" for a person's consent. Default false.
	AcceptAuto bool `toml:"accept_auto"`
	// Infer "single" gives a request that names no session to the one run that
	// waits, on listeners without a key. Default "off".
	Infer string `toml:"infer"`
	// Identity is what is done about identity_binding: "ignore", the default,
	// "verify" where there is one, "require".
	Identity string `toml:"identity"`
	// TrustRoot is the folder of <identity_id>/public_key.pem.
	TrustRoot string `toml:"trust_root"`
	// AnswerTimeout is the longest wait for a reply; then it is "processing".
	// Default 25s, below the harness's 30s.
	AnswerTimeout time.Duration `toml:"answer_timeout"`
	// SessionTimeout ends sessions that nobody continues. Default 10m.
	SessionTimeout time.Duration `toml:"session_timeout"`
}

// TurnTool is one [[contract.turn.tools]].
type TurnTool struct {
	Name        string `toml:"name"`
	Description string `toml:"description"` // for the model
	Schema      string `toml:"schema"`      // JSON Schema of the arguments; empty: no arguments
}

var memberName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

func (k checker) contract() {
	t := &k.c.Contract.Turn
	k.key(t.Listen == "" || socketAddress(t.Listen) && loopback(t.Listen), "contract.turn.listen",
		"expected host:port on loopback, because this listener asks for no key, got %q", shorten(t.Listen))
	k.key(t.Scenario == "" || len(t.Tools) == 0, "contract.turn.scenario", "expected either a scenario or [[contract.turn.tools]]")
	for i, tool := range t.Tools {
		at := "contract.turn.tools"
		k.key(groupName.MatchString(tool.Name), at, "expected names of letters, digits, _ and -, entry %d is %q", i+1, shorten(tool.Name))
		first := slices.IndexFunc(t.Tools, func(other TurnTool) bool { return other.Name == tool.Name })
		k.key(first == i, at, "expected each tool once, got %q again", shorten(tool.Name))
		k.key(!blank(tool.Description), at, "expected a description for the model, tool %q has none", shorten(tool.Name))
		k.key(tool.Schema == "" || strictjson.Valid([]byte(tool.Schema)) == nil, at, "expected JSON in schema, tool %q has none", shorten(tool.Name))
	}
	for _, name := range t.Aliases {
		k.key(memberName.MatchString(name) && name != "task_description", "contract.turn.aliases", "expected names of members, such as \"input\", got %q", shorten(name))
	}
	k.key(t.Infer == InferOff || t.Infer == InferSingle, "contract.turn.infer", `expected "off" or "single", got %q`, shorten(t.Infer))
	k.key(slices.Contains([]string{IdentityIgnore, IdentityVerify, IdentityRequire}, t.Identity), "contract.turn.identity",
		`expected "ignore", "verify" or "require", got %q`, shorten(t.Identity))
	k.key(t.Identity == IdentityIgnore || t.TrustRoot != "", "contract.turn.trust_root", "expected the folder of public keys, because identity is %q", shorten(t.Identity))
	k.between("contract.turn.answer_timeout", t.AnswerTimeout, 100*time.Millisecond, 5*time.Minute)
	k.between("contract.turn.session_timeout", t.SessionTimeout, time.Second, 24*time.Hour)
}

// keepContract is keep for a table that has lists.
func keepContract(next, started *Config) bool {
	differs := !reflect.DeepEqual(next.Contract, started.Contract)
	next.Contract = started.Contract
	return differs
}
