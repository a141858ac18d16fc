package abi

// DescribeRequest asks a module what it is. The answer must not depend on it.
type DescribeRequest struct {
	Call
}

// Description is the reply to describe.
type Description struct {
	Name         string   `json:"name"`    // [a-z0-9-]{1,64}
	Version      string   `json:"version"` // semantic version
	ABI          int      `json:"abi"`
	Kind         string   `json:"kind"` // KindGuardrail or KindWorkflow
	Summary      string   `json:"summary,omitempty"`
	ConfigSchema Raw      `json:"config_schema,omitempty"` // JSON Schema of configure's config
	Limits       *Limits  `json:"limits,omitempty"`        // wanted; the operator decides
	Prompts      []string `json:"prompts,omitempty"`       // names of the prompts it needs
	Skills       []Skill  `json:"skills,omitempty"`        // for the agent's manifest
	Cases        []Case   `json:"cases,omitempty"`         // at most MaxCases
}

// Limits are what a plugin would like to have, for its largest call.
type Limits struct {
	MemoryMiB int `json:"memory_mib,omitempty"`
	TimeoutMS int `json:"timeout_ms,omitempty"`
}

// Skill is one thing that the agent can do, as a manifest shows it.
type Skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags,omitempty"`
	Examples    []string `json:"examples,omitempty"`
}

// Case is a self-check: the host calls Hook with Request after configuring the
// plugin with the operator's configuration and compares what Expect names. So a
// case is one that holds whatever a sensible operator configures.
type Case struct {
	Name    string `json:"name"`
	Hook    Hook   `json:"hook"`
	Request Raw    `json:"request"`
	Expect  Raw    `json:"expect"` // object; every member must equal the reply's
}

// ConfigureRequest carries the operator's configuration of one plugin. It
// never holds a secret.
type ConfigureRequest struct {
	Call
	Config  Raw      `json:"config"` // object, {} when the operator wrote none
	Prompts []Prompt `json:"prompts,omitempty"`
}

// Prompt is one prompt file by the name that the plugin knows it by.
type Prompt struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// ConfigureReply tells the host how to drive the plugin. An error in the
// configuration is Error, a sentence for the operator; the host then refuses
// the generation.
type ConfigureReply struct {
	Error string `json:"error,omitempty"`

	// Patterns let the host look for them itself and call check_output only
	// where one of them counts. A guard that declares them promises, of a
	// request without state: where none has a decided match that begins before
	// open, it answers {"hold_from": open} and keeps no state; open is the
	// earliest offset from which a match may still come, the text's length when
	// it is final. They need a LookBehind of at least four bytes.
	Patterns []Pattern `json:"patterns,omitempty"`
	// SendMatches has the matches that the host has found sent along with
	// check_output, so that the guard need not look again. See
	// [CheckOutputRequest]; its replies must be the same with and without.
	SendMatches bool `json:"send_matches,omitempty"`
	// LookBehind is how many bytes before text check_output wants in before.
	LookBehind int `json:"look_behind,omitempty"`
	// HoldBack makes the host drive check_output by a fixed window of that
	// many bytes, for a plugin that knows nothing of hold_from: it finds what
	// it can in what it is shown, its hold_from and state do not count. Not
	// together with Patterns, and at most half of what a guard may leave
	// undecided, 32 KiB.
	HoldBack int `json:"hold_back,omitempty"`
	// Prompts names the prompts that model requests may refer to.
	Prompts []string `json:"prompts,omitempty"`
}

// Pattern is one regular expression in Go's syntax.
type Pattern struct {
	ID      string `json:"id"`
	Expr    string `json:"expr"`
	Bound   int    `json:"bound,omitempty"`   // maximum of its unbounded repetitions
	Minimal bool   `json:"minimal,omitempty"` // decided at the shortest match
}
