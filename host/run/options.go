package run

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"weir/abi"
	"weir/host/fault"
	"weir/host/telemetry"
)

// Options are an engine's settings. The zero value of each field means its
// default.
type Options struct {
	// Name is the workflow step's and the root span's name. Default "agent.invoke".
	Name string
	// MaxToolCalls is the number of tool calls that one run may dispatch, 20 by
	// default. One more model call than that is made.
	MaxToolCalls int
	// Timeout bounds a run's running time, 300 s by default. It does not count
	// while a run waits for a human. Too short cuts off slow models; the client
	// then gets the one error block.
	Timeout time.Duration
	// InputDecision and OutputDecision name the decision events.
	InputDecision, OutputDecision string
	// Trim keeps the turns that count; nil keeps all.
	Trim func([]abi.Turn) []abi.Turn
	// Digests keeps no payload of a record after the run's end but those without
	// any text, only their digests.
	Digests bool
	// AskTimeout is how long a person has for an answer, 600 s by default.
	AskTimeout time.Duration
	// Reached is told of each point at which a run becomes durable, by the kind
	// of the last record: "before interaction_opened" ahead of the append,
	// "interaction_opened" behind it. For tests that end the process there.
	Reached func(record string)
	// Tracer records spans; nil records none.
	Tracer *telemetry.Tracer
	// Logger receives what went wrong, without any text of a request.
	Logger *slog.Logger
	// Now and NewID are the clock and the source of ids, for tests.
	Now   func() time.Time
	NewID func() string
	// Seed is the source of plugins' randomness, for tests.
	Seed func() uint64
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "agent.invoke"
	}
	if o.MaxToolCalls == 0 {
		o.MaxToolCalls = 20
	}
	if o.Timeout == 0 {
		o.Timeout = 300 * time.Second
	}
	if o.InputDecision == "" {
		o.InputDecision = "guardrail_input_self_check_decision"
	}
	if o.OutputDecision == "" {
		o.OutputDecision = "guardrail_output_regex_pii_decision"
	}
	if o.AskTimeout == 0 {
		o.AskTimeout = 600 * time.Second
	}
	if o.Trim == nil {
		o.Trim = func(turns []abi.Turn) []abi.Turn { return turns }
	}
	if o.Reached == nil {
		o.Reached = func(string) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.Seed == nil {
		o.Seed = rand.Uint64
	}
	return o
}

func (o Options) validate() error {
	if o.MaxToolCalls < 1 || o.MaxToolCalls > 100 {
		return fault.New(fault.Invalid, "max tool calls: expected 1 to 100, got %d", o.MaxToolCalls)
	}
	if o.Timeout < 0 {
		return fault.New(fault.Invalid, "run time-out: expected a positive duration, got %s", o.Timeout)
	}
	return nil
}
