package run

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"weir/abi"
	"weir/host/fault"
)

// Recorded is an ended run as its log tells it to a replay.
type Recorded struct {
	Run        string
	Generation string
	Variant    string // empty: there were none
	Contract   string
	Caller     bool // it performed the tools
	Started    time.Time
	RequestID  string
	Source     string // of the request's id
	Roles      []string
	Call       abi.Call // clock and seed of the guards' calls
	Turns      []abi.Turn
	State      State
	Failure    Failure
	Recording  *Recording      // nil: none is kept
	Steps      map[string]Step // that ended, by id
	Decisions  []Step
	Released   string
	Questions  []Question // to a person
}

// Question is a question to a person and, if anybody answered, the answer in
// its display form. Of a caller's tool calls there is none.
type Question struct {
	Gate     string
	Prompt   abi.Raw
	Answered bool
	Outcome  string
	Value    string
}

// ReadRecorded reads a report. Payloads that are not kept are left out.
func ReadRecorded(report *Report) (*Recorded, error) {
	out := &Recorded{Run: report.Run, Generation: report.Generation, Variant: report.Variant, Steps: map[string]Step{}}
	for i := range report.Entries {
		e := &report.Entries[i]
		if len(e.Content) == 0 {
			continue
		}
		if err := out.take(e); err != nil {
			return nil, fault.New(fault.Internal, "run %s: record %d (%s): %w", report.Run, e.N, e.Kind, err)
		}
	}
	return out, nil
}

func (r *Recorded) take(e *LogRecord) error {
	read := func(into any) error { return json.Unmarshal(e.Content, into) }
	switch e.Kind {
	case RecordRunStarted:
		var s startedPayload
		err := read(&s)
		r.Generation, r.Contract, r.Roles, r.Call, r.Started = s.Generation, s.Contract, s.Roles, s.Call, e.At()
		r.RequestID, r.Source, r.Caller = s.RequestID, s.Source, s.Caller != nil
		return err
	case RecordQuestion:
		var q requestPayload
		err := read(&q)
		r.Turns = q.Turns
		return err
	case RecordStep, RecordDecision:
		var p stepPayload
		err := read(&p)
		if e.Kind == RecordDecision {
			r.Decisions = append(r.Decisions, p.step())
		} else if p.End {
			r.Steps[p.ID] = p.step()
		}
		return err
	case RecordReleased:
		var p releasedPayload
		err := read(&p)
		r.Released += p.Text
		return err
	case RecordInteractionOpened:
		var p openedPayload
		err := read(&p)
		r.Questions = append(r.Questions, Question{Gate: p.Gate, Prompt: p.Prompt})
		return err
	case RecordHuman:
		var p humanPayload
		err := read(&p)
		if n := len(r.Questions); n > 0 { // a run that is resumed twice takes its answer twice
			q := &r.Questions[n-1]
			q.Answered, q.Outcome, q.Value = true, p.Outcome, p.Value
		}
		return err
	case RecordRecording:
		r.Recording = new(Recording)
		return read(r.Recording)
	case RecordRunEnded:
		var p endedPayload
		err := read(&p)
		r.State, r.Failure = p.State, p.Failure
		return err
	}
	return nil
}

// Part returns a part of the policy that judged the run.
func (r *Recording) Part(name string) (Part, bool) {
	i := slices.IndexFunc(r.Parts, func(p Part) bool { return p.Name == name })
	if i < 0 {
		return Part{}, false
	}
	return r.Parts[i], true
}

// Respond answers the open question of a run in a log that nobody else uses, with
// an answer as the log keeps it.
func Respond(ctx context.Context, log Log, id string, given abi.Raw) error {
	j, err := read(ctx, log, id)
	if err != nil {
		return err
	}
	p, err := j.question(ctx, log)
	if err != nil {
		return err
	}
	if !p.open {
		return fault.New(fault.Conflict, "run %s: no question is open", id)
	}
	if err := j.add(RecordInteractionAnswered, resolvedPayload{ID: p.opened.ID, Answer: given}, p.opened.Kind != KindCalls); err != nil {
		return err
	}
	return j.flush(ctx, log, func() string { return p.opened.ID }, false)
}

// Listed is a run that has a log.
type Listed struct {
	Run     string    `json:"run"`
	Started time.Time `json:"started"`
}

// List lists the runs of logs that began at or after a time, newest first, at
// most so many; 0: all. A log that is gone or whose beginning cannot be read is
// left out; of a store that does not answer nothing is.
func List(ctx context.Context, log Log, names []string, since time.Time, most int) ([]Listed, error) {
	var out []Listed
	for _, name := range names {
		at, err := began(ctx, log, name)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case passing(err): // a list that lacks runs in silence would be judged by
			return nil, err
		case err != nil || at.Before(since):
			continue
		}
		out = append(out, Listed{Run: strings.TrimPrefix(name, LogName("")), Started: at})
	}
	slices.SortStableFunc(out, func(a, b Listed) int { return b.Started.Compare(a.Started) })
	if most > 0 && len(out) > most {
		out = out[:most]
	}
	return out, nil
}

// began is the time of a log's first record.
func began(ctx context.Context, log Log, name string) (time.Time, error) {
	for message, err := range log.Read(ctx, name, 0) {
		if err != nil {
			return time.Time{}, err
		}
		var r Record
		var h Header
		if len(message.Records) == 0 || json.Unmarshal(message.Records[0], &r) != nil || json.Unmarshal(r.Header, &h) != nil {
			break
		}
		return time.UnixMilli(h.Time), nil
	}
	return time.Time{}, fault.New(fault.NotFound, "%s: there is no record", name)
}
