package e2e

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/host/fault"
	"weir/host/run"
)

// The records at which a run with a change becomes durable, in their order. At
// each the process is killed, once ahead of the append and once behind it.
var killPoints = []string{
	"interaction_opened#1", "interaction_answered#1", "run_claimed#1",
	"interaction_opened#2", "interaction_answered#2", "run_claimed#2",
	"action_sent#1", "action_settled#1", "run_ended#1",
}

// A3, A5, A6, A7: whatever a run has reached when its process is killed, the
// next process on the same state directory goes on from there. What a person
// agreed to happens exactly once, no call is made again, and nobody is told
// anything that is not so.
func TestKilledAtEveryPoint(t *testing.T) {
	for _, record := range killPoints {
		for _, point := range []string{"before " + record, record} {
			t.Run(point, func(t *testing.T) {
				t.Parallel()
				killAt(t, point)
			})
		}
	}
}

func killAt(t *testing.T, point string) {
	o := newOffice(t, officeSetup{setup: setup{only: []string{"react"}}})
	first := o.doomed(t, point)
	l := first.propose(t)
	answered := map[string]int{} // interaction to the status that its answer got
	for {
		q, err := l.question()
		if err != nil {
			break
		}
		answered[q.Interaction], _ = first.answer(t, userID, q, q.reply())
	}
	if code := first.proc.wait(t, hang); code != -1 { // by a signal
		t.Fatalf("code %d: the point was not reached:\n%s", code, first.proc.stderr)
	}
	saw := l.all.String()
	reads, calls := o.desk.reads.Load(), o.model.AgentCalls()

	second := o.open(t)
	if point == "before interaction_opened#1" { // nobody was asked, nothing is known
		if resp := second.events(t.Context(), t, userID, l.id, ""); resp.StatusCode != http.StatusNotFound {
			t.Errorf("status %d of a run that was lost", resp.StatusCode)
		}
		second.leave(t)
		if _, err := o.lookInto(l.id); fault.Of(err) != fault.NotFound {
			t.Errorf("its log: %v", err)
		}
		if p, n := o.priority(t, "TKT-1001"); p != "medium" || n != 0 || o.desk.executes.Load() != 0 {
			t.Errorf("priority %s, %d changes", p, n)
		}
		return
	}
	again := second.again(t, l.id)
	for {
		q, err := again.question()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v after\n%s\n%s", err, &again.all, second.proc.stderr)
		}
		t.Logf("%s: asked %s after it listened", point, time.Since(second.ready).Round(time.Millisecond))
		if took := time.Since(second.ready); took > hang {
			t.Errorf("the question is there after %s", took)
		}
		if answered[q.Interaction] == http.StatusNoContent {
			t.Errorf("a question whose answer was taken is open again")
		}
		if status, text := second.answer(t, userID, q, q.reply()); status != http.StatusNoContent {
			t.Fatalf("status %d: %s", status, text)
		}
	}
	told := again.all.String()
	for interaction, status := range answered { // taken or gone: nothing may be answered twice
		if status, _ := second.respond(t, userID, l.id, interaction, chooseHigh); status != http.StatusNotFound {
			t.Errorf("a late answer got %d, its first %d", status, answered[interaction])
		}
		_ = status
	}
	second.leave(t)
	o.holdsTo(t, point, l.id, saw, told)
	if n := o.desk.reads.Load(); n != reads || n != 1 {
		t.Errorf("A6: %d reads before, %d after", reads, n)
	}
	if n := o.model.AgentCalls(); n > max(calls, 3)+1 { // a call in flight at the end may be made again
		t.Errorf("%d model calls before, %d after", calls, n)
	}
	noSecrets(t, "stderr", first.proc.stderr.String()+second.proc.stderr.String())
	o.replays(t, l.id)
}

// holdsTo checks what must be true in the end, wherever the process died.
func (o *office) holdsTo(t *testing.T, point, execution, saw, told string) {
	t.Helper()
	if p, n := o.priority(t, "TKT-1001"); p != "high" || n != 1 {
		t.Errorf("priority %s, %d changes", p, n)
	}
	if n := len(o.desk.used()); n != 1 {
		t.Errorf("A5: %d tokens were sent", n)
	}
	posts := o.desk.executes.Load()
	if crashed := point == "before action_settled#1"; posts != 1 && !crashed || posts != 2 && crashed {
		t.Errorf("%d executions were sent", posts)
	}
	settled := point == "before action_settled#1"
	text := "Done: TKT-1001 had medium priority and has high priority now, as you approved."
	if settled {
		text = "The change of TKT-1001 that you approved has been applied."
	}
	if !strings.Contains(textOf(told), text) {
		t.Errorf("the user was told %q", textOf(told))
	}
	results := toolResults(t, o.model)
	if n := len(results); n != 2 || !strings.Contains(results[1], `"committed":true`) || strings.Contains(results[1], `"settled":true`) != settled {
		t.Errorf("the model was told %q", results)
	}
	story := []string{`"type":"WORKFLOW_START"`, `"type":"TOOL_START"`, `"type":"TOOL_END"`, `"type":"FUNCTION_START","name":"ticket_priority_change"`,
		`"type":"FUNCTION_END","name":"ticket_priority_change"`, outputDecision, `"type":"WORKFLOW_END"`}
	at := 0
	for _, part := range story {
		part = strings.ReplaceAll(part, `","name"`, `","name"`)
		i := indexOfStep(told[at:], part)
		if i < 0 {
			t.Fatalf("the events lack %s from %d on:\n%s", part, at, told)
		}
		at += i
	}
	if strings.Count(told, `"type":"WORKFLOW_START"`) != 1 || strings.Count(told, `"type":"WORKFLOW_END"`) != 1 || strings.Contains(told, "events_missing") {
		t.Errorf("the events:\n%s", told)
	}
	if got := textOf(saw); !strings.HasPrefix(textOf(told), got) {
		t.Errorf("the first client saw %q, the events say %q", got, textOf(told))
	}
	noSecrets(t, "the stream", saw+told)
	report := o.inspect(t, execution)
	for kind, want := range map[string]int{run.RecordRunStarted: 1, run.RecordInteractionOpened: 2, run.RecordInteractionAnswered: 2,
		run.RecordActionClaims: 1, run.RecordActionSent: 1, run.RecordActionSettled: 1, run.RecordRunEnded: 1} {
		if n := countKind(report, kind); n != want {
			t.Errorf("%d records %s, want %d: %q", n, kind, want, kinds(report))
		}
	}
	for _, e := range report.Entries {
		if e.Kept == run.KeptWithheld {
			t.Errorf("record %d, %s: text that no guard has seen is still there", e.N, e.Kind)
		}
	}
	if report.State != run.Completed {
		t.Errorf("state %s", report.State)
	}
}

// indexOfStep finds a step's type and name in a stream, where an id lies
// between the two.
func indexOfStep(raw, part string) int {
	kind, name, _ := strings.Cut(part, `,"name"`)
	for i := 0; ; {
		n := strings.Index(raw[i:], kind)
		if n < 0 {
			return -1
		}
		i += n
		end := strings.Index(raw[i:], "\n\n")
		if end < 0 {
			end = len(raw) - i
		}
		if strings.Contains(raw[i:i+end], name) {
			return i
		}
		i += len(kind)
	}
}
