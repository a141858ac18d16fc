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
	"unicode/utf8"

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

	Monitor      bool // judge beside the chain and change nothing
	AllowOnError bool // go on without it when it fails, instead of blocking
	GrantRoles   bool // it may see the caller's roles

	// LookBehind is how many bytes before its text check_output sees,
	// 0 to 64 KiB.
	LookBehind int
	// Patterns let the host look for them itself and call check_output only
	// where one stands; see native. They need a LookBehind of at least four
	// bytes, the character before the text.
	Patterns []abi.Pattern
	// SendMatches sends what was found along, for a guard that need not look
	// again. Without Patterns it means nothing.
	SendMatches bool
	// HoldBack drives check_output by a fixed window of so many bytes, at most
	// half of TailBytes, for a plugin that knows nothing of hold_from; see
	// window. 0: the plugin knows. It excludes Patterns.
	HoldBack int

	Input      InputChecker
	Output     OutputChecker
	ToolCall   ToolCallChecker
	ToolResult ToolResultChecker

	native *native // looks for Patterns; nil: the plugin is asked always
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

	// Guards in monitor mode work beside runs and after their end, with bounds
	// of their own for all runs of a chain together. What finds no room is
	// dropped and reported as dropped: a monitor never slows a request.

	// MonitorCalls is how many of them work at once. Default 2; many take the
	// processor from the runs.
	MonitorCalls int
	// MonitorQueue is how many more wait. Default 64. Each keeps the text that
	// it is to judge, at most an answer or a tool result.
	MonitorQueue int
	// MonitorAsks is how many model calls they make at once. Default 1: a guard
	// model has few slots, and the runs need them.
	MonitorAsks int
	// MonitorTimeout bounds one judgement with its model calls. Default 30 s.
	MonitorTimeout time.Duration

	// Clock measures durations. Default time.Now.
	Clock func() time.Time
}

const (
	defaultMaxOutputChars = 200_000
	defaultTailBytes      = 64 << 10
	defaultAskTimeout     = 20 * time.Second
	defaultMonitorCalls   = 2
	defaultMonitorQueue   = 64
	defaultMonitorAsks    = 1
	defaultMonitorTimeout = 30 * time.Second
	maxLookBehind         = 64 << 10

	defaultInputBlockMessage = "I'm sorry, I can't help with that request."
	defaultSecretNotice      = "I can't share the rest of that response because it may contain sensitive information."
	defaultOversizeNotice    = "The response was too large to safely apply output protection and the rest was withheld."
	defaultOutputName        = "regex + deterministic PII output"
)

// Chain is the guards of one generation in the order in which they decide. It
// is safe for concurrent use.
type Chain struct {
	opts       Options
	input      lineup
	output     lineup
	toolCall   lineup
	toolResult lineup
	monitors   monitors
}

// lineup is the guards that take part in one stage.
type lineup struct {
	all       []*Guard // in chain order, as decision events list them
	enforcing []*Guard
	watching  []*Guard // in monitor mode
}

func (l *lineup) add(g *Guard) {
	l.all = append(l.all, g)
	if g.Monitor {
		l.watching = append(l.watching, g)
	} else {
		l.enforcing = append(l.enforcing, g)
	}
}

// New returns the chain of guards, which decide in the order given. The checkers
// stay the caller's.
func New(guards []Guard, opts Options) (*Chain, error) {
	opts = opts.withDefaults()
	if err := validate(guards, opts); err != nil {
		return nil, err
	}
	c := &Chain{opts: opts}
	c.monitors.init(opts)
	for i := range guards {
		g := guards[i]
		if err := g.drive(); err != nil {
			return nil, err
		}
		if g.Input != nil {
			c.input.add(&g)
		}
		if g.Output != nil {
			c.output.add(&g)
		}
		if g.ToolCall != nil {
			c.toolCall.add(&g)
		}
		if g.ToolResult != nil {
			c.toolResult.add(&g)
		}
	}
	return c, nil
}

// Close ends what guards in monitor mode are still doing and waits for it, or
// until ctx ends. Later verdicts of theirs are dropped; enforcing guards go on.
// It may be called twice.
func (c *Chain) Close(ctx context.Context) error { return c.monitors.close(ctx) }

func (o Options) withDefaults() Options {
	orText(&o.InputBlockMessage, defaultInputBlockMessage)
	orText(&o.SecretNotice, defaultSecretNotice)
	orText(&o.OversizeNotice, defaultOversizeNotice)
	orText(&o.OutputName, defaultOutputName)
	orNumber(&o.MaxOutputChars, defaultMaxOutputChars)
	orNumber(&o.TailBytes, defaultTailBytes)
	orNumber(&o.AskTimeout, defaultAskTimeout)
	orNumber(&o.MonitorCalls, defaultMonitorCalls)
	orNumber(&o.MonitorQueue, defaultMonitorQueue)
	orNumber(&o.MonitorAsks, defaultMonitorAsks)
	orNumber(&o.MonitorTimeout, defaultMonitorTimeout)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}

func orNumber[T int | time.Duration](n *T, fallback T) {
	if *n == 0 {
		*n = fallback
	}
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
	case opts.MonitorCalls < 0 || opts.MonitorQueue < 0 || opts.MonitorAsks < 0 || opts.MonitorTimeout < 0:
		return fault.New(fault.Invalid, "guards: the bounds of monitors must be positive")
	}
	seen := make(map[string]bool, len(guards))
	for i := range guards {
		g := &guards[i]
		if err := g.validate(); err != nil {
			return err
		}
		if most := opts.TailBytes / 2; g.HoldBack > most {
			return fault.New(fault.Invalid, "guard %s: hold_back must be at most %d bytes, half of what a guard may leave undecided, not %d", g.Name, most, g.HoldBack)
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
	case g.Input == nil && g.Output == nil && g.ToolCall == nil && g.ToolResult == nil:
		return fault.New(fault.Invalid, "guard %s: it has no check", g.Name)
	case g.LookBehind < 0 || g.LookBehind > maxLookBehind:
		return fault.New(fault.Invalid, "guard %s: look_behind must be 0 to %d bytes, not %d", g.Name, maxLookBehind, g.LookBehind)
	case g.HoldBack < 0:
		return fault.New(fault.Invalid, "guard %s: hold_back must not be negative, it is %d", g.Name, g.HoldBack)
	case g.HoldBack > 0 && len(g.Patterns) > 0:
		return fault.New(fault.Invalid, "guard %s: it declares both patterns and hold_back, expected one of them", g.Name)
	case len(g.Patterns) > 0 && g.LookBehind < utf8.UTFMax:
		return fault.New(fault.Invalid, "guard %s: patterns need a look_behind of at least %d bytes, not %d", g.Name, utf8.UTFMax, g.LookBehind)
	}
	return nil
}
