package replay

import (
	"encoding/json"
	"slices"
	"strings"

	"weir/abi"
	"weir/host/run"
)

// compare says what the replayed run did differently. Behind a halt nothing is
// compared: what stands there in the record is not answered.
func (s *session) compare(r *Result, got *run.Recorded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.StateNow = string(got.State)
	r.Unanswered = s.unanswered
	r.Fuel, r.Millis = costs(s.rec.Decisions)
	r.FuelNow, r.MillisNow = costs(got.Decisions)
	s.count(r)
	if got.State == run.Blocked {
		r.change(Change{Kind: AllowBlock, Stage: StageInput, What: "the question", Was: "passed", Now: "blocked by " + source(got.Decisions)})
		s.text(r, got)
		return
	}
	s.compareSteps(r)
	s.compareQuestions(r)
	s.compareOutput(r, got)
	if s.halted {
		r.StateNow = ""
		return
	}
	if got.State != s.rec.State {
		r.change(Change{Kind: End, Stage: StageRun, Step: s.steps, What: "the run", Was: string(s.rec.State), Now: string(got.State)})
	}
	s.text(r, got)
}

func (s *session) text(r *Result, got *run.Recorded) {
	if got.Released == s.rec.Released || s.endless && strings.HasPrefix(got.Released, s.stream.text) {
		return
	}
	r.Released, r.Now = s.rec.Released, got.Released
	r.change(Change{Kind: Text, Stage: StageOutput, Step: s.steps, What: "the released text"})
}

// count is how many questions the recording puts to the other generation, and
// leaves those open that the replay did not get to.
func (s *session) count(r *Result) {
	r.Items = 1 + len(s.replies) + len(s.rec.Questions) + len(s.record.Edits)
	if s.record.Stop != nil {
		r.Items++
	}
	for _, h := range s.record.Heard {
		r.Items += len(h.Results)
	}
	if !s.halted {
		return
	}
	r.Items++ // the question that it ended at
	for k := max(s.haltedAt, 0); k < len(s.record.Heard); k++ {
		h := &s.record.Heard[k]
		if h.Type == abi.EventModel || h.Type == abi.EventModelFailed {
			r.unanswer(Unanswered{Stage: StageModel, Step: k + 1, Was: WasAllow, What: "a model's reply", Why: whyHalted})
		}
		for _, result := range h.Results {
			r.unanswer(Unanswered{Stage: StageToolCall, Step: k + 1, Was: wasBlock(result.Refused), What: "a tool call", Why: whyHalted})
		}
	}
	for range s.rec.Questions[min(s.asked, len(s.rec.Questions)):] {
		r.unanswer(Unanswered{Stage: StageApproval, Step: s.haltedAt + 1, Was: WasApproval, What: "a question to a person", Why: whyHalted})
	}
}

const whyHalted = "the replay ended before"

// source is who decided, as a decision event says it.
func source(decisions []run.Step) string {
	if len(decisions) == 0 {
		return "the guards"
	}
	var d struct {
		Source string `json:"decision_source"`
		Reason string `json:"reason_code"`
		Guards []struct {
			Name    string `json:"name"`
			Verdict string `json:"verdict"`
			Reason  string `json:"reason_code"`
		} `json:"guards"`
	}
	if json.Unmarshal(decisions[0].Output, &d) != nil {
		return "the guards"
	}
	for _, g := range d.Guards {
		if g.Verdict == "block" || g.Verdict == "error" {
			return strings.TrimSpace(g.Name + " " + g.Reason)
		}
	}
	return d.Source
}

// compareSteps holds the events that the workflow was given against those of
// the record.
func (s *session) compareSteps(r *Result) {
	end := len(s.events)
	if s.halted {
		end = min(end, max(s.haltedAt, 0))
	}
	tools := 0
	for k := range min(end, len(s.record.Heard)) {
		h, e := &s.record.Heard[k], &s.events[k]
		if h.Type != e.Type {
			r.change(Change{Kind: Tools, Stage: StageTools, Step: k + 1, What: "the workflow's action", Was: h.Type, Now: e.Type})
			return
		}
		if h.Type != abi.EventTools {
			continue
		}
		calls := s.batchNames(tools)
		tools++
		for i := range max(len(h.Results), len(e.Results)) {
			if i >= len(h.Results) || i >= len(e.Results) {
				r.change(Change{Kind: Tools, Stage: StageTools, Step: k + 1, What: "the number of calls"})
				break
			}
			s.compareCall(r, k, calls[i], &h.Results[i], &e.Results[i], s.texts[k][i])
		}
	}
	if s.halted {
		return
	}
	heard := len(s.record.Heard)
	if heard > 0 && s.record.Heard[heard-1].Stopped {
		heard-- // a reply in which the answer was cut is not told
	}
	if end != heard && end < len(s.record.Heard) && !s.cutEarly() {
		r.change(Change{Kind: Tools, Stage: StageTools, Step: end + 1, What: "the workflow ended", Was: "it went on", Now: "it ended"})
	}
}

// cutEarly tells whether the target cut the answer itself.
func (s *session) cutEarly() bool {
	if s.main == nil || s.main.Sink == nil {
		return false
	}
	select {
	case <-s.main.Sink.Cut():
		return true
	default:
		return false
	}
}

// batchNames are the names of the calls of one of the recording's actions, as
// far as they are those of tools.
func (s *session) batchNames(n int) []string {
	k := -1
	for i := range s.record.Heard {
		h := &s.record.Heard[i]
		if h.Type != abi.EventTools {
			continue
		}
		if k++; k == n {
			names := make([]string, len(h.Results))
			for j, result := range h.Results {
				names[j] = "a call"
				if step, ok := s.rec.Steps[result.Step]; ok {
					names[j] = step.Name
				}
			}
			return names
		}
	}
	return nil
}

func (s *session) compareCall(r *Result, k int, name string, was *run.HeardResult, now *abi.ToolResult, text string) {
	step := k + 1
	switch {
	case was.Refused == now.Refused:
	case now.Refused:
		r.change(Change{Kind: AllowBlock, Stage: StageToolCall, Step: step, What: name, Was: "allowed", Now: now.Text})
	default:
		r.change(Change{Kind: BlockAllow, Stage: StageToolCall, Step: step, What: name, Was: "refused: " + was.Why, Now: "allowed"})
	}
	if was.Refused == now.Refused && (was.Failed != now.Failed || now.Text != text && !sameJSON([]byte(now.Text), []byte(text))) {
		r.change(Change{Kind: Tools, Stage: StageToolResult, Step: step, What: name, Was: "result", Now: "another result"})
	}
}

// compareQuestions holds what people were asked against the record.
func (s *session) compareQuestions(r *Result) {
	switch was := len(s.rec.Questions); {
	case s.asked > was:
		r.change(Change{Kind: AllowApproval, Stage: StageApproval, Step: s.haltedAt + 1, What: "a person has to agree", Was: "nobody was asked", Now: "a person is asked"})
	case s.asked < was && !s.halted:
		r.change(Change{Kind: ApprovalAllow, Stage: StageApproval, Step: s.steps, What: "a person had to agree", Was: "a person was asked", Now: "nobody is asked"})
	}
}

// compareOutput holds masks and the cut against the record.
func (s *session) compareOutput(r *Result, got *run.Recorded) {
	if got.Recording == nil {
		return
	}
	now := got.Recording.Edits
	for _, e := range s.record.Edits {
		switch {
		case e.Start >= s.stream.total:
			start, end := s.stream.own(e)
			if !s.halted && !slices.ContainsFunc(now, func(n run.Edit) bool { return n.Start == start && n.End == end && n.Label == e.Label }) {
				r.change(Change{Kind: MaskNone, Stage: StageOutput, Step: s.steps, What: e.Label, Was: e.Replace})
			}
		case s.same(e.Guard):
		case s.gone(e.Guard):
			r.change(Change{Kind: MaskNone, Stage: StageOutput, Step: s.stepAt(e.Start), What: e.Label, Was: e.Replace, Now: e.Guard + " is gone"})
		default:
			r.unanswer(Unanswered{Stage: StageOutput, Step: s.stepAt(e.Start), Was: WasMask, What: e.Label,
				Why: "the text behind the mask is not kept, and " + e.Guard + " is another one now"})
		}
	}
	for _, n := range now {
		s.compareEdit(r, n)
	}
	s.compareStop(r, got.Recording.Stop)
}

// gone tells whether a guard enforces no more and every other output guard is
// as it was, so nobody is left who would do what it did.
func (s *session) gone(guard string) bool {
	others := slices.DeleteFunc(inStage(s.record.Parts, run.StageOutput), func(p run.Part) bool { return p.Name == guard })
	return slices.Equal(others, inStage(s.parts, run.StageOutput))
}

// compareEdit looks at an edit that the target made on what is kept.
func (s *session) compareEdit(r *Result, n run.Edit) {
	if n.Start >= s.stream.all() { // of the workflow's own text
		for _, e := range s.record.Edits {
			if start, end := s.stream.own(e); e.Start >= s.stream.total && start == n.Start && end == n.End && e.Label == n.Label {
				return
			}
		}
	} else if m := s.stream.touching(n.Start, n.End); m != nil {
		if m.start == n.Start && m.end == n.End && m.edit.Replace == n.Replace {
			return // it masks a mask in the same way
		}
		r.unanswer(Unanswered{Stage: StageOutput, Step: s.steps, Was: WasMask, What: n.Label, Why: "it would change a text that is masked already"})
		return
	}
	if n.Start < s.stream.all() && s.unchanged(run.StageOutput) {
		r.unanswer(Unanswered{Stage: StageOutput, Step: s.steps, Was: WasAllow, What: n.Label, Why: "the same guards see a match only in the masked form"})
		return
	}
	r.change(Change{Kind: NoneMask, Stage: StageOutput, Step: s.steps, What: n.Label, Now: n.Replace})
}

func (s *session) compareStop(r *Result, now *run.Stop) {
	was := s.record.Stop
	switch {
	case was == nil && now != nil:
		r.change(Change{Kind: AllowBlock, Stage: StageOutput, Step: s.steps, What: "the answer", Was: "passed", Now: "cut by " + named(now.Guard) + " " + now.Label})
	case was != nil && now == nil && (s.record.Own && !s.halted || was.Guard != "" && s.gone(was.Guard)):
		r.change(Change{Kind: BlockAllow, Stage: StageOutput, Step: s.steps, What: "the answer", Was: "cut by " + named(was.Guard) + " " + was.Label, Now: "not cut there"})
	}
}

// stepAt is the step in which a model said this.
func (s *session) stepAt(raw int) int {
	for k, end := range s.stream.ends {
		if raw < end {
			return k + 1
		}
	}
	return len(s.stream.ends)
}
