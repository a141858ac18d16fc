package run

import (
	"strings"
	"sync"

	"weir/abi"
	"weir/host/telemetry"
)

// shown is what a run shows to its client and writes to its log, in one order.
// Text comes from the sink's goroutine, everything else from the run's; the
// engine syncs the sink before it shows anything else, so the two never mix.
type shown struct {
	out  Observer
	span *telemetry.RunSpan
	opts Options

	mu       sync.Mutex
	journal  journal
	released strings.Builder
	recorded int // bytes of released that have a record
}

func newShown(out Observer, span *telemetry.RunSpan, req Request, call abi.Call, generation string, opts Options) *shown {
	s := &shown{out: out, span: span, opts: opts,
		journal: journal{run: req.RunID, generation: generation, now: opts.Now}}
	s.record(RecordRunStarted, startedPayload{
		Principal: req.Principal.UserID, RequestID: req.RequestID, Source: req.RequestIDSource,
		Traceparent: req.Traceparent, Generation: generation, Contract: req.Contract,
		Call: call, Request: req.Turns,
	}, true)
	return s
}

// startedPayload is the one record, with interaction_opened, in which a raw
// user id may stand.
type startedPayload struct {
	Principal   string     `json:"principal"`
	RequestID   string     `json:"request_id"`
	Source      string     `json:"source"`
	Traceparent string     `json:"traceparent,omitempty"`
	Generation  string     `json:"generation"`
	Contract    string     `json:"contract"`
	Call        abi.Call   `json:"call"` // clock and seed of the guards' calls
	Request     []abi.Turn `json:"request"`
}

func (s *shown) Started(i Info)   { s.out.Started(i) }
func (s *shown) Step(st Step)     { s.out.Step(st) }
func (s *shown) Failed(f Failure) { s.out.Failed(f) }
func (s *shown) Ended(i Info)     { s.out.Ended(i) }

// Text shows released text.
func (s *shown) Text(text string) {
	if text == "" {
		return
	}
	s.mu.Lock()
	s.released.WriteString(text)
	s.mu.Unlock()
	s.span.Released(text)
	s.out.Text(text)
}

// decide shows the end of a decision and records it.
func (s *shown) decide(st Step) {
	s.record(RecordDecision, decisionPayload{Name: st.Name, Output: st.Output}, true)
	s.out.Step(st)
}

type decisionPayload struct {
	Name   string  `json:"name"`
	Output abi.Raw `json:"output"`
}

// record adds a record, and before it one of the text released since the last.
func (s *shown) record(kind string, payload any, kept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.released.Len(); n > s.recorded {
		s.add(RecordReleased, map[string]any{"from": s.recorded, "to": n, "text": s.released.String()[s.recorded:]}, true)
		s.recorded = n
	}
	s.add(kind, payload, kept)
}

func (s *shown) add(kind string, payload any, kept bool) {
	if err := s.journal.add(kind, payload, kept); err != nil {
		// Only a payload that is not JSON gets here: a plugin's raw value that
		// escaped its validation.
		s.opts.Logger.Error("record left out", "run", s.journal.run, "kind", kind, "error", err)
	}
}
