// Package sample reads of a run's log what a comparison of variants needs: counts
// and times, and no text.
package sample

import (
	"encoding/json"
	"fmt"
	"time"

	"weir/abi"
	"weir/cmd/weir/internal/compare/variant"
	"weir/host/run"
)

// Read reads a log. Its error names the record that cannot be read.
func Read(report *run.Report) (variant.Sample, error) {
	s := reader{Sample: variant.Sample{Run: report.Run, Variant: report.Variant, Generation: report.Generation}}
	var c clock
	dropped := false
	for i := range report.Entries {
		e := &report.Entries[i]
		c.tick(e)
		dropped = dropped || e.Kind == run.RecordDecision && e.Kept != run.KeptFull
		if len(e.Content) == 0 {
			continue
		}
		// These two are there in every log, so only others show that more than
		// digests is kept. A run without guardrails has no decision.
		s.Kept = s.Kept || e.Kind != run.RecordRunStarted && e.Kind != run.RecordRunEnded
		if err := s.take(e); err != nil {
			return s.Sample, fmt.Errorf("run %s: record %d (%s): %w", report.Run, e.N, e.Kind, err)
		}
	}
	s.Kept = s.Kept && !dropped
	s.Seconds = c.spent.Seconds()
	return s.Sample, nil
}

// reader fills a sample in, record by record.
type reader struct{ variant.Sample }

// clock adds up the time in which a run is running.
type clock struct {
	since time.Time // zero while it waits
	spent time.Duration
}

func (c *clock) tick(e *run.LogRecord) {
	switch e.Kind {
	case run.RecordRunStarted, run.RecordRunClaimed:
		if c.since.IsZero() {
			c.since = e.At()
		}
	case run.RecordInteractionOpened, run.RecordRunEnded:
		if !c.since.IsZero() {
			c.spent += e.At().Sub(c.since)
		}
		c.since = time.Time{}
	}
}

func (s *reader) take(e *run.LogRecord) error {
	switch e.Kind {
	case run.RecordRunStarted:
		s.Started = e.At()
		return json.Unmarshal(e.Content, &struct {
			Pseudonym *string `json:"pseudonym"`
		}{&s.User})
	case run.RecordInteractionOpened:
		var opened struct {
			Kind string `json:"kind"`
		}
		err := json.Unmarshal(e.Content, &opened)
		if opened.Kind != run.KindCalls { // those are for a program
			s.Questions++
		}
		return err
	case run.RecordHuman:
		var human struct {
			Outcome string `json:"outcome"`
		}
		err := json.Unmarshal(e.Content, &human)
		if human.Outcome == abi.HumanAnswered && s.Answers < s.Questions { // a run that is resumed twice takes its answer twice
			s.Answers++
		}
		return err
	case run.RecordDecision:
		return s.decision(e.Content)
	case run.RecordRecording:
		return s.recording(e.Content)
	case run.RecordRunEnded:
		s.Ended = true
		return json.Unmarshal(e.Content, &struct {
			State *string `json:"state"`
		}{&s.State})
	}
	return nil
}

// decision adds what a stage decided.
func (s *reader) decision(content []byte) error {
	var step struct {
		Output struct {
			Stage   string          `json:"stage"`
			Blocked bool            `json:"blocked"`
			Masked  json.RawMessage `json:"masked_entities"` // the host's own only of the output stage
			Guards  []struct {
				Fuel uint64 `json:"fuel"`
			} `json:"guards"`
		} `json:"output"`
	}
	if err := json.Unmarshal(content, &step); err != nil {
		return err
	}
	d := &step.Output
	for _, g := range d.Guards {
		s.Fuel += g.Fuel
	}
	switch {
	case d.Stage == stageToolCall && d.Blocked:
		s.CallsRefused++
	case d.Stage == stageToolResult && d.Blocked:
		s.ResultsWithheld++
	case d.Stage == stageOutput:
		s.Cut = s.Cut || d.Blocked
		masked := map[string]int{}
		if err := json.Unmarshal(d.Masked, &masked); err != nil {
			return err
		}
		for _, n := range masked {
			s.Masks += n
		}
	}
	return nil
}

// Stages as decisions name them.
const (
	stageToolCall   = "tool_call"
	stageToolResult = "tool_result"
	stageOutput     = "output"
)

// recording counts calls.
func (s *reader) recording(content []byte) error {
	var r run.Recording
	if err := json.Unmarshal(content, &r); err != nil {
		return err
	}
	s.Recorded, s.GuardCalls = true, len(r.Asks)
	for _, h := range r.Heard {
		s.InputTokens, s.OutputTokens = s.InputTokens+h.InputTokens, s.OutputTokens+h.OutputTokens
		switch {
		case h.Type == abi.EventModel, h.Type == abi.EventModelFailed && h.Code != abi.FailBudget:
			s.ModelCalls++
		}
		for _, result := range h.Results {
			if !result.Refused || result.Why == run.WhyWithheld { // that one was made
				s.ToolCalls++
			}
		}
	}
	return nil
}
