package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/host/run"
	"weir/host/store/jetstream"
)

// 3.6: a client that leaves ends a run that waits for it: within moments the
// answer gets 404, and nothing is executed.
func TestLeavingCancels(t *testing.T) {
	t.Parallel()
	o := newOffice(t, officeSetup{setup: setup{only: []string{"react"}}})
	w := o.open(t)
	l := w.propose(t)
	q := l.asked(t)
	l.hangUp()
	left := time.Now()
	eventually(t, func() bool { // a foreign answer changes nothing
		status, _ := w.answer(t, "other", q, chooseHigh)
		return status == http.StatusNotFound
	})
	t.Logf("gone %s after the client", time.Since(left).Round(time.Millisecond))
	if status, text := w.answer(t, userID, q, chooseHigh); status != http.StatusNotFound || text != noPending {
		t.Errorf("status %d: %s", status, text)
	}
	w.leave(t)
	if report := o.inspect(t, l.id); report.State != run.Cancelled || countKind(report, run.RecordInteractionCancelled) != 1 {
		t.Errorf("state %s: %q", report.State, kinds(report))
	}
	if p, n := o.priority(t, "TKT-1001"); p != "medium" || n != 0 || o.desk.executes.Load() != 0 {
		t.Errorf("priority %s, %d changes", p, n)
	}
}

// A process that dies while it cancels leaves the question open or the run
// ended, never something between.
func TestKilledWhileCancelling(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before run_ended#1", "run_ended#1"} {
		t.Run(strings.Fields(point)[0], func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, officeSetup{setup: setup{only: []string{"react"}}})
			first := o.doomed(t, point)
			l := first.propose(t)
			q := l.asked(t)
			l.hangUp()
			first.proc.wait(t, hang)
			second := o.open(t)
			status, text := second.answer(t, userID, q, cancelChoice)
			if want := map[bool]int{true: 204, false: 404}[strings.HasPrefix(point, "before")]; status != want {
				t.Errorf("status %d: %s", status, text)
			}
			second.again(t, l.id).rest(t)
			second.leave(t)
			if report := o.inspect(t, l.id); countKind(report, run.RecordRunEnded) != 1 || o.desk.executes.Load() != 0 {
				t.Errorf("%q", kinds(report))
			}
		})
	}
}

// A shutdown is no disconnect: /health/ready says so first, nothing new begins,
// what runs has its time, what waits ends its stream without an error and can
// be answered after the restart.
func TestDrainKeepsWaitingRuns(t *testing.T) {
	t.Parallel()
	model, arrived, release := held(t)
	o := newOffice(t, officeSetup{setup: setup{only: []string{"react"}, model: model, config: func(c string) string {
		return replace(t, c, "drain = \"300ms\"", "drain = \"20s\"")
	}}})
	first := o.open(t)
	busy := listen(first.open(t.Context(), t, user("Please raise the priority of ticket TKT-1003 to high.")))
	for range 2 {
		q := busy.asked(t)
		if status, text := first.answer(t, userID, q, q.reply()); status != http.StatusNoContent {
			t.Fatalf("status %d: %s", status, text)
		}
	}
	<-arrived // its change is made, its model thinks
	l := first.propose(t)
	q := l.asked(t)
	interrupt(t, first.proc)
	if raw := l.rest(t); strings.Contains(raw, "workflow_error") || !strings.Contains(raw, `"type":"WORKFLOW_END"`) {
		t.Errorf("the stream of a waiting run ends with\n%s", raw)
	}
	resp, err := client.Get(first.url + "/health/ready")
	if err != nil {
		t.Fatal(err)
	}
	if text := drain(t, resp); resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "draining") {
		t.Errorf("ready: status %d: %s", resp.StatusCode, text)
	}
	if resp, err = client.Do(first.request(t.Context(), t, user("Hello"))); err != nil {
		t.Fatal(err)
	}
	if text := drain(t, resp); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a new run: status %d: %s", resp.StatusCode, text)
	}
	release()
	if told := textOf(busy.rest(t)); !strings.Contains(told, "Done: TKT-1003") {
		t.Errorf("the run in progress ends with %q", told)
	}
	if code := first.proc.wait(t, hang); code != 0 {
		t.Errorf("code %d:\n%s", code, first.proc.stderr)
	}
	second := o.open(t)
	again := second.again(t, l.id)
	if open := again.asked(t); open.block != q.block {
		t.Errorf("after the restart it asks\n%s, not\n%s", open.block, q.block)
	}
	again.hangUp()
	if told := textOf(second.approve(t, second.again(t, l.id))); !strings.Contains(told, "Done: TKT-1001") {
		t.Errorf("the user was told %q", told)
	}
	if p, n := o.priority(t, "TKT-1001"); p != "high" || n != 1 {
		t.Errorf("priority %s, %d changes", p, n)
	}
}

// mailer is a model that proposes the change and ends with an address, which
// only output-pii takes out of the answer.
func mailer() *model {
	return &model{agent: func(c *chat, _ int) {
		all := messagesOf(c.body)
		if all[len(all)-1].Role == "tool" {
			c.text("Write to anna@example.org about it.").end("stop")
			return
		}
		c.call(0, changeStep, `{"ticket_id":"TKT-1001","current_priority":"medium","requested_priority":"high","summary":"It is late."}`).end("tool_calls")
	}}
}

var generationOf = regexp.MustCompile(`"generation":"([0-9a-f]{64})"`)

// redeploy changes the prompt and takes a guard away.
func (o *office) redeploy(t *testing.T) {
	t.Helper()
	write(t, filepath.Join(filepath.Dir(o.path), "prompts", "system.md"), []byte("You are the second edition.\n{tools}\n{tool_names}\n"))
	text := readFile(t, o.path)
	before, rest, ok := strings.Cut(text, "\n[plugins.output-pii]\n")
	_, after, end := strings.Cut(rest, "# Changes that a person may")
	if !ok || !end {
		t.Fatal("the plugin stands elsewhere")
	}
	write(t, o.path, []byte(before+"\n# Changes that a person may"+after))
	if err := os.Remove(filepath.Join(filepath.Dir(o.path), "plugins", "dist", "output-pii.wasm")); err != nil {
		t.Fatal(err)
	}
}

// A5: a run that waits goes on with exactly the policy that it began with, when
// the host has been redeployed with another one and the old files are gone.
func TestRedeployedWhileWaiting(t *testing.T) {
	t.Parallel()
	m := mailer()
	o := newOffice(t, officeSetup{setup: setup{model: m}})
	first := o.open(t)
	l := first.propose(t)
	q := l.asked(t)
	old := generationOf.FindStringSubmatch(l.all.String())[1]
	first.leave(t)
	o.redeploy(t)
	second := o.open(t)
	raw := second.approve(t, second.again(t, l.id))
	for _, g := range generationOf.FindAllStringSubmatch(raw, -1) {
		if g[1] != old {
			t.Errorf("the run names generation %s, began with %s", g[1], old)
		}
	}
	if told := textOf(raw); told != "Write to <EMAIL_ADDRESS> about it." {
		t.Errorf("the old guard let %q through", told)
	}
	if strings.Contains(string(*m.last.Load()), "second edition") {
		t.Error("the model got the new prompt")
	}
	if p, n := o.priority(t, "TKT-1001"); p != "high" || n != 1 {
		t.Errorf("priority %s, %d changes", p, n)
	}
	if status, text := second.answer(t, userID, q, chooseHigh); status != http.StatusNotFound {
		t.Errorf("status %d: %s", status, text)
	}
	// The control: a new run has the new policy.
	l = second.propose(t)
	if status, text := second.answer(t, userID, l.asked(t), cancelChoice); status != http.StatusNoContent {
		t.Fatalf("status %d: %s", status, text)
	}
	raw = l.rest(t)
	if g := generationOf.FindStringSubmatch(raw)[1]; g == old || textOf(raw) != "Write to anna@example.org about it." {
		t.Errorf("a new run has generation %s and tells %q", g, textOf(raw))
	}
	if !strings.Contains(string(*m.last.Load()), "second edition") {
		t.Error("the model got the old prompt")
	}
	second.leave(t)
	if report := o.inspect(t, l.id); report.Generation == old {
		t.Error("the log names the old generation")
	}
}

// 410: what the policy was made of does not exist any more. The run ends as
// failed, and nothing is executed.
func TestPolicyIsGone(t *testing.T) {
	t.Parallel()
	o := newOffice(t, officeSetup{setup: setup{model: mailer()}})
	first := o.open(t)
	l := first.propose(t)
	q := l.asked(t)
	old := generationOf.FindStringSubmatch(l.all.String())[1]
	first.leave(t)
	o.redeploy(t)
	s, err := jetstream.Open(context.Background(), jetstream.Options{Dir: o.state, LateLogs: "whole."})
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Get(context.Background(), "generation."+old)
	if err == nil {
		err = s.Delete(context.Background(), "generation."+old, v.Revision)
	}
	if err == nil {
		err = s.DropSpace(context.Background(), "generation."+old)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	second := o.open(t)
	if status, text := second.answer(t, userID, q, chooseHigh); status != http.StatusGone || text != `{"error":"the run this interaction belonged to has ended"}` {
		t.Errorf("status %d: %s", status, text)
	}
	eventually(t, func() bool {
		status, _ := second.answer(t, userID, q, chooseHigh)
		return status == http.StatusNotFound
	})
	raw := second.again(t, l.id).rest(t)
	if !strings.Contains(raw, `{"error":"workflow_error","message":"The agent run failed."}`) || strings.Count(raw, `"type":"WORKFLOW_END"`) != 1 {
		t.Errorf("the events:\n%s", raw)
	}
	second.leave(t)
	if report := o.inspect(t, l.id); report.State != run.Failed {
		t.Errorf("state %s: %q", report.State, kinds(report))
	}
	if p, n := o.priority(t, "TKT-1001"); p != "medium" || n != 0 || o.desk.executes.Load() != 0 {
		t.Errorf("priority %s, %d changes", p, n)
	}
}

// A7 and DECISIONS 6: a process dies behind the execution, and the desk cannot
// be asked again: nobody is told that it was done, or that it was not.
func TestOutcomeIsNotKnown(t *testing.T) {
	t.Parallel()
	o := newOffice(t, officeSetup{setup: setup{only: []string{"react"}}})
	first := o.doomed(t, "before action_settled#1")
	l := first.propose(t)
	for range 2 {
		q := l.asked(t)
		first.answer(t, userID, q, q.reply())
	}
	l.hangUp()
	first.proc.wait(t, hang)
	away := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "away", http.StatusBadGateway) }
	o.desk.intercept.Store(&away)
	second := o.open(t)
	raw := second.again(t, l.id).rest(t)
	if told := textOf(raw); !strings.Contains(told, "It is not known whether the change of TKT-1001 was applied.") {
		t.Errorf("the user was told %q", told)
	}
	results := toolResults(t, o.model)
	if n := len(results); n != 2 || !strings.Contains(results[1], `"outcome_unknown":true`) || strings.Contains(results[1], "NOTHING was applied") {
		t.Errorf("the model was told %q", results)
	}
	if _, n := o.priority(t, "TKT-1001"); n != 1 || len(o.desk.used()) != 1 {
		t.Errorf("%d changes, %d tokens", n, len(o.desk.used()))
	}
	second.leave(t)
	if report := o.inspect(t, l.id); report.State != run.Completed {
		t.Errorf("state %s: %q", report.State, kinds(report))
	}
}
