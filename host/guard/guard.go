// Package guard puts guardrails between a run and the outside: a chain of
// checks before the model (input, tool calls, tool results), redaction of what
// people see of tools, and one guarded stream for the answer's text.
//
//	turns ──► input chain ──► run ──► Sink.Push ─► guards ─► merge ─► Release
//	                           │ ▲
//	      tool call ─► chain ──┘ └── chain ◄─ tool result ─► Display
//
// Its promise is that a guarded stream equals the guarded whole: however a text
// is cut into pieces, what is released, put together, is what guarding the whole
// text at once gives. It holds for guards whose replies are a function of the
// text and their configuration, and as long as no guard fails.
//
// A guard that fails never becomes a pass: its failure policy decides, and the
// default is to block.
package guard

import (
	"context"
	"time"

	"weir/abi"
	"weir/host/fault"
)

// The checkers are the hooks of one plugin. A request belongs to the caller and
// is valid only during the call; a reply belongs to the chain from then on. The
// number is the fuel that the call used. Calls may come from several goroutines.
type (
	InputChecker interface {
		CheckInput(ctx context.Context, req *abi.CheckInputRequest) (*abi.Verdict, uint64, error)
	}
	OutputChecker interface {
		CheckOutput(ctx context.Context, req *abi.CheckOutputRequest) (*abi.CheckOutputReply, uint64, error)
	}
	ToolCallChecker interface {
		CheckToolCall(ctx context.Context, req *abi.CheckToolCallRequest) (*abi.Verdict, uint64, error)
	}
	ToolResultChecker interface {
		CheckToolResult(ctx context.Context, req *abi.CheckToolResultRequest) (*abi.Verdict, uint64, error)
	}
)

// Guard is one guardrail of a chain. A nil checker means that it takes no part
// in that stage.
type Guard struct {
	Name   string // unique in the chain
	Digest string // of the module, for decision events

	Monitor      bool // decide and log only; not offered yet, see New
	AllowOnError bool // go on without it when it fails, instead of blocking
	GrantRoles   bool // it may see the caller's roles

	// LookBehind is how many bytes before its text check_output sees,
	// 0 to 64 KiB.
	LookBehind int

	Input      InputChecker
	Output     OutputChecker
	ToolCall   ToolCallChecker
	ToolResult ToolResultChecker
}

// Options are the words and bounds of a chain. The zero value is the contract's
// defaults.
type Options struct {
	// InputBlockMessage answers the user when an input guard failed, or blocked
	// without a message. Default: the contract's (2.10).
	InputBlockMessage string
	// SecretNotice ends an answer that was cut by a guard without a notice of
	// its own, or at the hold_from of a guard that failed. Default: 2.10.
	SecretNotice string
	// OversizeNotice ends an answer over MaxOutputChars. Default: 2.10.
	OversizeNotice string
	// OutputName is the member name of the output decision (2.7).
	OutputName string

	// MaxOutputChars bounds the answer of a run in characters (Unicode scalar
	// values). Default 200000. Small values cut ordinary answers; a large one
	// is the memory that a run may take, at up to four bytes a character.
	MaxOutputChars int
	// TailBytes is how much text a guard may leave undecided before that counts
	// as its failure. Default 64 KiB, far above what patterns need: a smaller
	// one fails guards with long patterns.
	TailBytes int
	// AskTimeout bounds one model call of a guard. Default 20 s.
	AskTimeout time.Duration

	// Clock measures durations. Default time.Now.
	Clock func() time.Time
}

const (
	defaultMaxOutputChars = 200_000
	defaultTailBytes      = 64 << 10
	defaultAskTimeout     = 20 * time.Second
	maxLookBehind         = 64 << 10

	defaultInputBlockMessage = "I'm sorry, I can't help with that request."
	defaultSecretNotice      = "I can't share the rest of that response because it may contain sensitive information."
	defaultOversizeNotice    = "The response was too large to safely apply output protection and the rest was withheld."
	defaultOutputName        = "regex + deterministic PII output"
)

// Chain is the guards of one generation in the order in which they decide. It
// is immutable and safe for concurrent use.
type Chain struct {
	opts       Options
	input      []*Guard
	output     []*Guard
	toolCall   []*Guard
	toolResult []*Guard
}

// New returns the chain of guards, which decide in the order given. A guard in
// monitor mode is refused: a chain that ran it as if it were enforcing, or left
// it out, would do something else than the operator wrote.
func New(guards []Guard, opts Options) (*Chain, error) {
	opts = opts.withDefaults()
	if err := validate(guards, opts); err != nil {
		return nil, err
	}
	c := &Chain{opts: opts}
	for i := range guards {
		g := guards[i]
		if g.Input != nil {
			c.input = append(c.input, &g)
		}
		if g.Output != nil {
			c.output = append(c.output, &g)
		}
		if g.ToolCall != nil {
			c.toolCall = append(c.toolCall, &g)
		}
		if g.ToolResult != nil {
			c.toolResult = append(c.toolResult, &g)
		}
	}
	return c, nil
}

func (o Options) withDefaults() Options {
	orText(&o.InputBlockMessage, defaultInputBlockMessage)
	orText(&o.SecretNotice, defaultSecretNotice)
	orText(&o.OversizeNotice, defaultOversizeNotice)
	orText(&o.OutputName, defaultOutputName)
	if o.MaxOutputChars == 0 {
		o.MaxOutputChars = defaultMaxOutputChars
	}
	if o.TailBytes == 0 {
		o.TailBytes = defaultTailBytes
	}
	if o.AskTimeout == 0 {
		o.AskTimeout = defaultAskTimeout
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}

func orText(s *string, fallback string) {
	if *s == "" {
		*s = fallback
	}
}

func validate(guards []Guard, opts Options) error {
	switch {
	case opts.MaxOutputChars < 0:
		return fault.New(fault.Invalid, "guards: the output limit must be positive, not %d", opts.MaxOutputChars)
	case opts.TailBytes < 0:
		return fault.New(fault.Invalid, "guards: the tail bound must be positive, not %d", opts.TailBytes)
	case opts.AskTimeout < 0:
		return fault.New(fault.Invalid, "guards: the model time-out must be positive, not %v", opts.AskTimeout)
	}
	seen := make(map[string]bool, len(guards))
	for i := range guards {
		g := &guards[i]
		if err := g.validate(); err != nil {
			return err
		}
		if seen[g.Name] {
			return fault.New(fault.Invalid, "guard %s: the name is used twice", g.Name)
		}
		seen[g.Name] = true
	}
	return nil
}

func (g *Guard) validate() error {
	switch {
	case g.Name == "":
		return fault.New(fault.Invalid, "guard: a name is required")
	case g.Monitor:
		return fault.New(fault.Invalid, `guard %s: mode "monitor" is not supported yet, use "enforce"`, g.Name)
	case g.Input == nil && g.Output == nil && g.ToolCall == nil && g.ToolResult == nil:
		return fault.New(fault.Invalid, "guard %s: it has no check", g.Name)
	case g.LookBehind < 0 || g.LookBehind > maxLookBehind:
		return fault.New(fault.Invalid, "guard %s: look_behind must be 0 to %d bytes, not %d", g.Name, maxLookBehind, g.LookBehind)
	}
	return nil
}
