package abi

// Version is the version of everything in this package. A host refuses a
// module of another version.
const Version = 1

// Names of a direct module's exports, and of what it may import.
const (
	ExportMemory = "memory"
	ExportMarker = "weir_abi_1"
	ExportAlloc  = "weir_alloc"

	// MarkerPrefix begins the marker export of every version, so a host can
	// tell a module of another version from a module that is no plugin.
	MarkerPrefix = "weir_abi_"

	ImportModule = "weir"
	ImportLog    = "log"
	ImportWASI   = "wasi_snapshot_preview1"

	// ImportExtism is what a module of the Extism carrier imports from, and by
	// which it is known. It exports its hooks as () -> i32.
	ImportExtism = "extism:host/env"

	// ReservedRefuel and ReservedPrefix belong to the host's own
	// instrumentation; a module that uses them is refused.
	ReservedRefuel = "refuel"
	ReservedPrefix = "__weir_"
)

// A Hook is the export by which a plugin takes part in a stage.
type Hook string

// The hooks of version 1.
const (
	HookDescribe        Hook = "describe"
	HookConfigure       Hook = "configure"
	HookCheckInput      Hook = "check_input"
	HookCheckOutput     Hook = "check_output"
	HookCheckToolCall   Hook = "check_tool_call"
	HookCheckToolResult Hook = "check_tool_result"
	HookStep            Hook = "step"
)

// Hooks lists every hook of this version, in the order of the table in the
// package's documentation.
func Hooks() []Hook {
	return []Hook{HookDescribe, HookConfigure, HookCheckInput, HookCheckOutput,
		HookCheckToolCall, HookCheckToolResult, HookStep}
}

// Kinds of plugin, as [Description.Kind] gives them.
const (
	KindGuardrail = "guardrail"
	KindWorkflow  = "workflow"
)

// Levels of weir.log; the numbers are those of log/slog.
const (
	LogDebug = -4
	LogInfo  = 0
	LogWarn  = 4
	LogError = 8
)

// Bounds that both sides of the boundary know.
const (
	MaxReply       = 4 << 20  // bytes of a reply, the host's default
	MaxState       = 1 << 20  // bytes of a workflow's state
	MaxOutputState = 4 << 10  // bytes of a check_output state
	MaxAskState    = 16 << 10 // bytes of the state beside an ask_model verdict
	MaxAskRounds   = 2        // ask_model verdicts in a row
	MaxCases       = 20       // self-check cases of a description
	MaxReasonCode  = 64       // bytes; [a-z0-9_]
	MaxLookBehind  = 64 << 10 // bytes of look_behind, and of hold_back
)

// Raw is a JSON value kept as its bytes, so numbers keep their text and
// objects their order. It must be one valid value; nil stands for absent.
type Raw []byte

// MarshalJSON implements json.Marshaler without importing encoding/json,
// which would double the size of a guest.
func (r Raw) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("null"), nil
	}
	return r, nil
}

// UnmarshalJSON implements json.Unmarshaler; it copies data.
func (r *Raw) UnmarshalJSON(data []byte) error {
	*r = append((*r)[:0], data...)
	return nil
}

// Call is what every request carries: the only clock and the only randomness
// that a plugin has, so a recorded call can be replayed exactly.
type Call struct {
	Now  int64  `json:"now"`  // milliseconds since 1970-01-01 UTC
	Seed string `json:"seed"` // 64 random bits in decimal; a string, so no reader rounds it
}

// Turn is one message of the conversation as the client sent it.
type Turn struct {
	Role    string `json:"role"` // "user" or "assistant"
	Content string `json:"content"`
}
