package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"

	"weir/cmd/weir-demo/internal/scripted"
	"weir/host/porttest"
)

// outside runs a NATS server that hosts share.
func outside(t testing.TB) (url string) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 1 << 30, JetStreamMaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server is not ready")
	}
	return s.ClientURL()
}

// sharing is an office whose hosts keep their logs in one NATS.
func sharing(t testing.TB, s officeSetup) *office {
	t.Helper()
	s.store = "backend = \"jetstream\"\nurl = \"" + outside(t) + "\""
	if s.only == nil {
		s.only = []string{"react"}
	}
	return newOffice(t, s)
}

// pair opens two replicas at once.
func (o *office) pair(t testing.TB) (a, b *replica) {
	t.Helper()
	var children [2]*child
	for i := range children {
		children[i] = launch(t, o.env, nil, "serve", "--config", o.path)
	}
	return attend(t, children[0]), attend(t, children[1])
}

// A question that is asked at one replica is answered at another one, with the
// stream open, and after the replica with the stream has been killed.
func TestAnsweredAtAnotherReplica(t *testing.T) {
	t.Parallel()
	o := sharing(t, officeSetup{modes: "on_disconnect = \"park\""})
	a, b := o.pair(t)
	l := &trail{a.propose(t), []*world{a.world, b.world}}
	for range 2 {
		q := l.asked(t)
		if status, text := b.answer(t, "other", q, q.reply()); status != http.StatusForbidden {
			t.Errorf("another user: status %d: %s", status, text)
		}
		if status, text := b.answer(t, userID, q, q.reply()); status != http.StatusNoContent {
			t.Fatalf("status %d: %s", status, text)
		}
		if status, text := b.answer(t, userID, q, q.reply()); status != http.StatusNotFound {
			t.Errorf("the second time: status %d: %s", status, text)
		}
	}
	raw := l.rest(t)
	if !strings.Contains(textOf(raw), "Done: TKT-1001") {
		t.Errorf("the user was told %q", textOf(raw))
	}
	if again := b.again(t, l.id).rest(t); textOf(again) != textOf(raw) {
		t.Errorf("the other replica tells %q", textOf(again))
	}

	doomed := listen(a.open(t.Context(), t, user("Please raise the priority of ticket TKT-1003 to urgent.")))
	q := doomed.asked(t)
	a.kill(t)
	urgent := strings.ReplaceAll(chooseHigh, `"high"`, `"urgent"`)
	answered := time.Now()
	if status, text := b.answer(t, userID, q, urgent); status != http.StatusNoContent {
		t.Fatalf("status %d: %s\n%s", status, text, b.proc.stderr)
	}
	more := b.again(t, doomed.id)
	q = more.asked(t)
	t.Logf("asked again %s after the answer, the replica with the stream being dead", time.Since(answered).Round(time.Millisecond))
	if q.kind() != "text" {
		t.Fatalf("it asks %s", q.block)
	}
	if status, text := b.answer(t, userID, q, giveReason); status != http.StatusNoContent {
		t.Fatalf("status %d: %s", status, text)
	}
	if told := textOf(more.rest(t)); !strings.Contains(told, "Done: TKT-1003") {
		t.Errorf("the user was told %q", told)
	}
	for ticket, want := range map[string]string{"TKT-1001": "high", "TKT-1003": "urgent"} {
		if p, n := o.priority(t, ticket); p != want || n != 1 {
			t.Errorf("%s: priority %s, %d changes", ticket, p, n)
		}
	}
	if n := o.desk.executes.Load(); n != 2 {
		t.Errorf("%d executions", n)
	}
	noSecrets(t, "stderr", a.proc.stderr.String()+b.proc.stderr.String())
}

// A3: of everybody who answers at once, at two replicas, with different words,
// one is taken, the others are told so, and one change is made.
func TestAnswerStorm(t *testing.T) {
	t.Parallel()
	o := sharing(t, officeSetup{})
	a, b := o.pair(t)
	for _, second := range []string{giveReason, `{"response":{"type":"text","text":"__CANCEL__"}}`} {
		ticket := map[bool]string{true: "TKT-1001", false: "TKT-1003"}[second == giveReason]
		both := []*world{a.world, b.world}
		l := &trail{listen(a.open(t.Context(), t, user("Please raise the priority of ticket "+ticket+" to high."))), both}
		for _, bodies := range [][]string{{chooseHigh}, {giveReason, second}} {
			storm(t, l.asked(t), both, bodies...)
		}
		raw := l.rest(t)
		p, n := o.priority(t, ticket)
		switch told := textOf(raw); {
		case p == "high" && n == 1 && strings.Contains(told, "Done: "+ticket):
		case second != giveReason && p == "medium" && n == 0 && strings.Contains(told, "The user cancelled."):
		default:
			t.Errorf("%s: priority %s, %d changes, the user was told %q", ticket, p, n, told)
		}
	}
	if n := len(o.desk.used()); int64(n) != o.desk.executes.Load() {
		t.Errorf("%d tokens, %d executions", n, o.desk.executes.Load())
	}
}

// trail follows a run onward where its stream ends because the replica with the
// stream was late, and another one went on.
type trail struct {
	*line
	worlds []*world
}

func (r *trail) asked(t *testing.T) *question {
	t.Helper()
	for {
		q, err := r.question()
		switch {
		case err == nil:
			return q
		case !errors.Is(err, io.EOF):
			t.Fatalf("no question comes: %v\n%s", err, &r.all)
		}
		r.onward(t)
	}
}

// rest reads to the end of the run.
func (r *trail) rest(t *testing.T) string {
	t.Helper()
	for range 10 {
		if raw := r.line.rest(t); textOf(raw) != "" {
			return raw
		}
		r.onward(t)
	}
	return ""
}

func (r *trail) onward(t *testing.T) {
	t.Helper()
	eventually(t, func() bool {
		for _, w := range r.worlds {
			resp := w.events(t.Context(), t, userID, r.id, "")
			if resp.StatusCode == http.StatusOK {
				r.line = listen(resp)
				return true
			}
			_ = resp.Body.Close()
		}
		return false
	})
}

// storm sends 64 answers at once.
func storm(t *testing.T, q *question, worlds []*world, bodies ...string) {
	t.Helper()
	var mu sync.Mutex
	got := map[int]int{}
	var sending sync.WaitGroup
	begin := make(chan struct{})
	for i := range 64 {
		sending.Go(func() {
			<-begin
			status, text := worlds[i%len(worlds)].answer(t, userID, q, bodies[(i/len(worlds))%len(bodies)])
			mu.Lock()
			defer mu.Unlock()
			got[status]++
			if status == 404 && text != noPending {
				t.Errorf("404: %s", text)
			}
		})
	}
	close(begin)
	sending.Wait()
	if got[204] != 1 || got[204]+got[404]+got[410] != 64 {
		t.Errorf("statuses %v, want one 204 and else 404 or 410", got)
	}
}

// held is a model that keeps the answer to the last question of a run until it
// is told to go on.
func held(t testing.TB) (m http.Handler, arrived chan struct{}, release func()) {
	t.Helper()
	usual := scripted.New(scripted.Options{GuardTemplate: guardTemplate(t)})
	arrived, gate := make(chan struct{}, 1), make(chan struct{})
	release = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(release)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		all := messagesOf(body)
		if last := all[len(all)-1]; last.Role == "tool" && strings.Contains(last.Content, `"committed":true`) {
			select {
			case arrived <- struct{}{}:
			default:
			}
			select {
			case <-gate:
			case <-r.Context().Done():
				return
			}
		}
		usual.ServeHTTP(w, r)
	}), arrived, release
}

// A2, A8: the events of a run in each of its phases, at its own replica and at
// another one, from every id; for another user there is no run.
func TestReconnect(t *testing.T) {
	t.Parallel()
	model, arrived, release := held(t)
	o := sharing(t, officeSetup{setup: setup{model: model}, modes: "on_disconnect = \"park\"", runs: "keep_events = \"30s\""})
	a, b := o.pair(t)
	l := a.propose(t)
	first := l.asked(t)
	nobody := func(phase string) {
		t.Helper()
		want := ""
		for _, w := range []*replica{a, b} {
			for i, execution := range []string{uuid.NewString(), l.id, "x", strings.ToUpper(l.id)} {
				resp := w.events(t.Context(), t, map[bool]string{true: "other", false: userID}[i == 1], execution, "")
				got := fmt.Sprint(resp.StatusCode, resp.Header.Get("Content-Type"), drain(t, resp))
				if want == "" {
					want = got
				}
				if got != want || resp.StatusCode != http.StatusNotFound {
					t.Errorf("%s: %s: %s, want %s", phase, execution, got, want)
				}
			}
		}
	}
	nobody("waiting")
	for _, w := range []*replica{a, b} { // the question can be answered by who comes back
		again := w.again(t, l.id)
		if q := again.asked(t); q.block != first.block {
			t.Errorf("it asks\n%s, not\n%s", q.block, first.block)
		}
		if got, want := idless(again.all.String()), l.all.String(); got != want {
			t.Errorf("the events so far\n%s, the stream\n%s", got, want)
		}
		again.hangUp()
	}
	follower := b.again(t, l.id) // over a park, at the replica that does not run it
	l.hangUp()                   // park: the run waits on
	if status, text := a.answer(t, userID, first, chooseHigh); status != http.StatusNoContent {
		t.Fatalf("status %d: %s", status, text)
	}
	second := a.again(t, l.id).asked(t)
	if status, text := a.answer(t, userID, second, giveReason); status != http.StatusNoContent {
		t.Fatalf("status %d: %s", status, text)
	}
	select {
	case <-arrived:
	case <-time.After(hang):
		for _, w := range []*replica{a, b} {
			resp := w.events(t.Context(), t, userID, l.id, "")
			t.Logf("status %d: %s\nstderr: %s", resp.StatusCode, drain(t, resp), w.proc.stderr)
		}
		t.Fatal("the run does not go on")
	}
	nobody("running")
	resp := b.events(t.Context(), t, userID, l.id, "")
	if text := drain(t, resp); resp.StatusCode != http.StatusConflict || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("running elsewhere: status %d, Retry-After %q: %s", resp.StatusCode, resp.Header.Get("Retry-After"), text)
	}
	live := a.again(t, l.id)
	for {
		block, err := live.block()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(block, `"type":"FUNCTION_END"`) && strings.Contains(block, changeStep) {
			break
		}
	}
	release()
	whole := live.rest(t)
	if !strings.Contains(textOf(whole), "Done: TKT-1001") {
		t.Errorf("the owner shows %q", textOf(whole))
	}
	ended := time.Now()
	nobody("ended")
	raw := a.again(t, l.id).rest(t)
	if idless(raw) != idless(whole) && textOf(raw) != textOf(whole) {
		t.Errorf("afterwards\n%s, live\n%s", raw, whole)
	}
	if other := b.again(t, l.id).rest(t); other != raw {
		t.Errorf("the replicas tell\n%s\nand\n%s", raw, other)
	}
	if got := textOf(follower.rest(t)); got != textOf(raw) {
		t.Errorf("who followed over the park was told %q, want %q", got, textOf(raw))
	}
	remainders(t, []*replica{a, b}, l.id, raw)
	for _, place := range []string{"x", "1", "1-2", "1-2-3-4", "-1-2-3", "1--2-3", "01-1-0", "1-1-99999999999999999999", " "} {
		resp := a.events(t.Context(), t, userID, l.id, place)
		if text := drain(t, resp); place != " " && resp.StatusCode != http.StatusBadRequest {
			t.Errorf("Last-Event-ID %q: status %d: %s", place, resp.StatusCode, text)
		}
	}
	for _, place := range []string{"7-3-0", "1-9999-0", "2-1-0"} { // of another run, or of an earlier life
		resp := a.events(t.Context(), t, userID, l.id, place)
		text := drain(t, resp)
		if !strings.Contains(text, "events_missing") || strings.Count(text, `"type":"WORKFLOW_START"`) != 1 || textOf(text) != textOf(raw) {
			t.Errorf("Last-Event-ID %q:\n%s", place, text)
		}
	}
	eventually(t, func() bool { return time.Since(ended) > 30*time.Second })
	for _, w := range []*replica{a, b} {
		var text string
		eventually(t, func() bool { // the log may have ended a little later than the stream
			text = w.again(t, l.id).rest(t)
			return strings.Contains(text, "events_missing")
		})
		if strings.Contains(text, "TKT-1001") || !strings.Contains(text, `"type":"WORKFLOW_END"`) {
			t.Errorf("expired:\n%s", text)
		}
	}
	nobody("expired")
}

// idless is a stream without its id lines.
func idless(raw string) string {
	var b strings.Builder
	for text := range strings.Lines(raw) {
		if !strings.HasPrefix(text, "id: ") {
			b.WriteString(text)
		}
	}
	return b.String()
}

// remainders comes back after every id of an ended run: what follows is what
// followed, byte for byte.
func remainders(t *testing.T, replicas []*replica, execution, raw string) {
	t.Helper()
	n := 0
	for i := 0; ; n++ {
		at := strings.Index(raw[i:], "id: ")
		if at < 0 {
			break
		}
		i += at + len("id: ")
		id, _, _ := strings.Cut(raw[i:], "\n")
		end := i + strings.Index(raw[i:], "\n\n") + 2
		w := replicas[n%len(replicas)]
		resp := w.events(t.Context(), t, userID, execution, id)
		if got := drain(t, resp); resp.StatusCode != http.StatusOK || got != raw[end:] {
			t.Errorf("after %s, status %d:\n%s, want\n%s", id, resp.StatusCode, got, raw[end:])
		}
	}
	if n < 8 {
		t.Errorf("only %d ids in\n%s", n, raw)
	}
}

// trio opens three hosts that carry one cluster of stores inside themselves.
func trio(t testing.TB, o *office) []*replica {
	t.Helper()
	listens := porttest.Free(t, 3)
	var routes []string
	for _, at := range listens {
		routes = append(routes, "nats-route://"+at)
	}
	children := make([]*child, 3)
	for i := range children {
		others := append(append([]string{}, routes[:i]...), routes[i+1:]...)
		text := readFile(t, o.path)
		text = replace(t, text, "\nbackend = \"jetstream\"", "\nbackend = \"jetstream\"\nreplicas = 3")
		text = replace(t, text, "\n[store.cluster]\n", fmt.Sprintf("\n[store.cluster]\nname = \"e2e\"\nserver = \"s%d\"\nlisten = %q\nroutes = %q\n",
			i+1, listens[i], strings.Join(others, ",")))
		path := filepath.Join(filepath.Dir(o.path), fmt.Sprintf("agent%d.toml", i+1))
		write(t, path, []byte(text))
		env := o.environment(map[string]string{"WEIR_STATE_DIR": filepath.Join(o.state, fmt.Sprint(i+1))})
		children[i] = launch(t, env, nil, "serve", "--config", path)
	}
	replicas := make([]*replica, 3)
	for i, c := range children {
		replicas[i] = attend(t, c)
	}
	return replicas
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Three replicas that need nobody else: answers anywhere, one killed while it
// has streams and while answers come in. Every change that a person agreed to
// is made once, and every question that was asked can still be answered.
func TestThreeReplicasOneKilled(t *testing.T) {
	t.Parallel()
	o := newOffice(t, officeSetup{setup: setup{only: []string{"react"}}, modes: "on_disconnect = \"park\""})
	replicas := trio(t, o)
	open := map[string]*line{}
	tickets := []string{"TKT-1001", "TKT-1003", "TKT-1002", "TKT-1004", "TKT-1005", "TKT-1006"}
	for i, ticket := range tickets {
		open[ticket] = listen(replicas[i%3].open(t.Context(), t, user("Please lower the priority of ticket "+ticket+" to "+target(ticket)+".")))
	}
	asked := map[string]*question{}
	for ticket, l := range open {
		asked[ticket] = l.asked(t)
	}
	survivors := []*world{replicas[1].world, replicas[2].world}
	// In the storm over the first two runs the replica that asked the first dies.
	var storming sync.WaitGroup
	results := make([]map[int]int, 2)
	for n, ticket := range tickets[:2] {
		results[n] = map[int]int{}
		var mu sync.Mutex
		for i := range 32 {
			storming.Go(func() {
				status, _ := replicas[i%3].answer(t, userID, asked[ticket], choose(target(ticket)))
				mu.Lock()
				defer mu.Unlock()
				results[n][status]++
			})
		}
	}
	replicas[0].kill(t)
	storming.Wait()
	t.Logf("statuses while one was killed: %v", results)
	for n := range results {
		if results[n][204] > 1 {
			t.Errorf("%d answers were taken", results[n][204])
		}
	}
	// Whatever the storm left is answered by who comes back to a survivor.
	for i, ticket := range tickets {
		w := survivors[i%2]
		eventually(t, func() bool { return o.finish(t, w, open[ticket].id, target(ticket)) })
	}
	for _, ticket := range tickets {
		if p, n := o.priority(t, ticket); p != target(ticket) || n != 1 {
			t.Errorf("%s: priority %s, %d changes", ticket, p, n)
		}
	}
	if n := len(o.desk.used()); n != len(tickets) {
		t.Errorf("%d tokens for %d changes", n, len(tickets))
	}
}

// target is a priority that a ticket does not have.
func target(ticket string) string {
	if ticket == "TKT-1006" {
		return "medium"
	}
	return "low"
}

func choose(priority string) string {
	return strings.ReplaceAll(chooseHigh, `"high"`, `"`+priority+`"`)
}

// finish answers what a run asks at one replica, and reports whether it has
// ended. It gives up for now where the run is elsewhere, or the store is
// choosing a new leader.
func (o *office) finish(t testing.TB, w *world, execution, priority string) bool {
	t.Helper()
	resp := w.events(t.Context(), t, userID, execution, "")
	if resp.StatusCode != http.StatusOK {
		if resp.StatusCode == http.StatusNotFound {
			t.Fatalf("the run is gone: %s", drain(t, resp))
		}
		_ = resp.Body.Close()
		time.Sleep(50 * time.Millisecond) // the store needs the processor more than we do
		return false
	}
	l := listen(resp)
	defer l.hangUp()
	for {
		q, err := l.question()
		if err != nil {
			return strings.Contains(l.all.String(), `"type":"WORKFLOW_END"`)
		}
		body := giveReason
		if q.kind() == "radio" {
			body = choose(priority)
		}
		if status, _ := w.answer(t, userID, q, body); status != http.StatusNoContent && status != http.StatusNotFound {
			return false
		}
	}
}
