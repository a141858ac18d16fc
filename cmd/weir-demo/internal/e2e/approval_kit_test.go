package e2e

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the desk's database, as an auditor reads it

	"weir/cmd/weir-demo/internal/scripted"
	"weir/cmd/weir-demo/internal/tickets"
	"weir/host"
	"weir/host/config"
	"weir/host/run"
)

// What the tests of approvals ask for, and how the step is called.
const (
	changeStep     = "ticket_priority_change"
	changeQuestion = "Please raise the priority of ticket TKT-1001 to high."
	why            = "The customer has followed up twice."
)

// office is everything around hosts that serve approvals: the desk with its
// database, the model, agent.toml and the state directory. It outlives them.
type office struct {
	desk  *clerk
	model *scripted.Server // nil where a test brings its own
	env   map[string]string
	path  string // agent.toml
	db    string
	state string
}

// officeSetup says in what an office differs from the usual one.
type officeSetup struct {
	setup
	store string // lines of [store]; default the embedded one
	modes string // lines of [approvals]
	runs  string // lines of [run]
	lines string // lines at the end of agent.toml
}

// newOffice opens an office in which people may approve changes and what waits
// for them outlives the process. Without a choice of plugins only the agent's
// loop and a masking guard are loaded, because every start pays for each.
func newOffice(t testing.TB, s officeSetup) *office {
	t.Helper()
	o := &office{db: filepath.Join(t.TempDir(), "tickets.db"), state: filepath.Join(t.TempDir(), "state")}
	if s.only == nil {
		s.only = []string{"react", "output-pii"}
	}
	if s.store == "" {
		s.store = "backend = \"jetstream\""
	}
	more := s.config
	s.config = func(c string) string {
		c = replace(t, c, "\n[actions.ticket_priority_change]\nenabled = false\n", "\n[actions.ticket_priority_change]\nenabled = true\n")
		for table, lines := range map[string]string{"[store]": s.store, "[approvals]": s.modes, "[run]": s.runs} {
			c = replace(t, c, "\n"+table+"\n", "\n"+table+"\n"+lines+"\n")
		}
		c += "\n" + s.lines
		if more != nil {
			c = more(c)
		}
		return c
	}
	o.path = deployment(t, s.edit(t), s.modules)
	o.desk = newClerk(t, o.db)
	s.desk = o.desk
	if s.model == nil {
		o.model = scripted.New(scripted.Options{GuardTemplate: guardTemplate(t)})
		s.model = o.model
	}
	var desk *httptest.Server
	o.env, desk = neighbours(t, s.setup)
	t.Cleanup(desk.CloseClientConnections)
	for name, value := range map[string]string{"HITL_APPROVAL_SECRET": approval, "HITL_ENABLE_INTERACTIVE": "true", "WEIR_STATE_DIR": o.state} {
		if _, ok := o.env[name]; !ok {
			o.env[name] = value
		}
	}
	return o
}

// clerk is the desk with its counters.
type clerk struct {
	desk http.Handler

	reads    atomic.Int64 // tools/call
	executes atomic.Int64 // POST /approvals/execute
	// intercept takes an execution's request in place of the desk; nil leaves it.
	intercept atomic.Pointer[func(http.ResponseWriter, *http.Request)]

	mu     sync.Mutex
	tokens []string
}

func newClerk(t testing.TB, db string) *clerk {
	t.Helper()
	desk, err := tickets.New(tickets.Options{Key: mcpKey, Database: db, ApprovalSecret: approval})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(desk.Close)
	return &clerk{desk: desk}
}

func (c *clerk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case r.URL.Path == "/approvals/execute":
			c.executes.Add(1)
			var sent struct {
				Token string `json:"approval_token"`
			}
			_ = json.Unmarshal(body, &sent)
			c.mu.Lock()
			c.tokens = append(c.tokens, sent.Token)
			c.mu.Unlock()
			if f := c.intercept.Load(); f != nil {
				(*f)(w, r)
				return
			}
		case bytes.Contains(body, []byte(`"tools/call"`)):
			c.reads.Add(1)
		}
	}
	c.desk.ServeHTTP(w, r)
}

// used are the distinct tokens that were sent.
func (c *clerk) used() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var distinct []string
	seen := map[string]bool{}
	for _, t := range c.tokens {
		if !seen[t] {
			seen[t] = true
			distinct = append(distinct, t)
		}
	}
	return distinct
}

// priority is a ticket's priority in the database, and how many changes of it
// the audit trail has.
func (o *office) priority(t testing.TB, ticket string) (priority string, changes int) {
	t.Helper()
	source := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(o.db), RawQuery: "mode=ro&_pragma=busy_timeout(5000)"}
	db, err := sql.Open("sqlite", source.String())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("SELECT priority FROM tickets WHERE id = ?", ticket).Scan(&priority); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow("SELECT count(*) FROM ticket_audit WHERE ticket_id = ?", ticket).Scan(&changes); err != nil {
		t.Fatal(err)
	}
	return priority, changes
}

// replica is a host in a process of its own.
type replica struct {
	*world
	proc  *child
	ready time.Time // when it said that it listens
}

// open starts the shipped binary.
func (o *office) open(t testing.TB) *replica { return o.with(t, nil) }

// with starts the shipped binary with some variables besides.
func (o *office) with(t testing.TB, env map[string]string) *replica {
	t.Helper()
	return attend(t, launch(t, o.environment(env), nil, "serve", "--config", o.path))
}

func (o *office) environment(more map[string]string) map[string]string {
	env := map[string]string{}
	for _, m := range []map[string]string{o.env, more} {
		for name, value := range m {
			env[name] = value
		}
	}
	return env
}

func attend(t testing.TB, c *child) *replica {
	t.Helper()
	r := &replica{world: &world{addr: c.address(t)}, proc: c, ready: time.Now()}
	r.url = "http://" + r.addr
	return r
}

// kill ends a replica as a power failure would.
func (r *replica) kill(t testing.TB) {
	t.Helper()
	if err := r.proc.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-r.proc.ended
}

// leave ends a replica as an operator would.
func (r *replica) leave(t testing.TB) {
	t.Helper()
	interrupt(t, r.proc)
	if code := r.proc.wait(t, hang); code != 0 {
		t.Errorf("code %d:\n%s", code, r.proc.stderr)
	}
}

// diesAt tells this program to be a host that kills itself where a record is
// appended: "before KIND#n" or "KIND#n", for the n-th time.
const diesAt = "WEIR_E2E_DIES_AT"

// doomed starts a host that dies there.
func (o *office) doomed(t testing.TB, point string) *replica {
	t.Helper()
	return o.bare(t, point, nil)
}

// bare starts a host in this test's own program.
func (o *office) bare(t testing.TB, point string, stdin io.Reader) *replica {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return attend(t, spawn(t, exec.Command(self), o.environment(map[string]string{diesAt: point, "AGENT_CONFIG_PATH": o.path}), stdin))
}

// serveUntil is the doomed program.
func serveUntil(point string) int {
	kind, number, _ := strings.Cut(point, "#")
	left, _ := strconv.Atoi(number)
	var mu sync.Mutex
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	go weigh()
	err := host.Serve(context.Background(), host.Options{Env: os.LookupEnv, Logger: log,
		Started: func(addr net.Addr) { log.Info("listening", "address", addr.String()) },
		Reached: func(record string) {
			mu.Lock()
			defer mu.Unlock()
			if record != kind {
				return
			}
			if left--; left == 0 {
				self, _ := os.FindProcess(os.Getpid())
				_ = self.Kill()
				select {} // nothing after the point happens
			}
		}})
	log.Error("the host ended", "error", err)
	return 3
}

// weigh answers each line on the standard input with the memory that the
// process has, once nothing in it is garbage.
func weigh() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		runtime.GC() // twice: what a finalizer held goes with the second
		debug.FreeOSMemory()
		status, _ := os.ReadFile("/proc/self/status")
		_, after, _ := strings.Cut(string(status), "VmRSS:")
		fields := strings.Fields(after)
		if len(fields) == 0 {
			fields = []string{"0"}
		}
		_, _ = os.Stdout.WriteString(fields[0] + "\n") // KiB
	}
}

// question is what a person is asked on the wire.
type question struct {
	Execution   string          `json:"execution_id"`
	Interaction string          `json:"interaction_id"`
	Prompt      json.RawMessage `json:"prompt"`

	block string
}

func (q *question) kind() string {
	var p struct {
		Type string `json:"input_type"`
	}
	_ = json.Unmarshal(q.Prompt, &p)
	return p.Type
}

// Answers to the two prompts of a change.
const (
	chooseHigh   = `{"response":{"type":"radio","selected_option":{"id":"high","label":"x","value":"high"}}}`
	keepMedium   = `{"response":{"type":"radio","selected_option":{"id":"medium","label":"x","value":"medium"}}}`
	cancelChoice = `{"response":{"type":"radio","selected_option":{"id":"cancel","label":"x","value":"__CANCEL__"}}}`
	giveReason   = `{"response":{"type":"text","text":"` + why + `"}}`
)

// reply is the usual answer to a question.
func (q *question) reply() string {
	if q.kind() == "radio" {
		return chooseHigh
	}
	return giveReason
}

// answer sends a person's answer and returns the status and the body; 0 when
// nobody answered.
func (w *world) answer(t testing.TB, who string, q *question, body string) (int, string) {
	t.Helper()
	return w.respond(t, who, q.Execution, q.Interaction, body)
}

func (w *world) respond(t testing.TB, who, execution, interaction, body string) (int, string) {
	t.Helper()
	req := w.as(context.Background(), t, who, http.MethodPost, "/executions/"+execution+"/interactions/"+interaction+"/response", body)
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// as is a request of a user's.
func (w *world) as(ctx context.Context, t testing.TB, who, method, path, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+serviceKey)
	req.Header.Set("x-authenticated-user-id", who)
	req.Header.Set("x-request-id", "99999999-2222-4333-8444-555555555555")
	return req
}

// events opens a run's events, from the start or after an id.
func (w *world) events(ctx context.Context, t testing.TB, who, execution, after string) *http.Response {
	t.Helper()
	req := w.as(ctx, t, who, http.MethodGet, "/executions/"+execution+"/events", "")
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// again opens a run's events from the start, waiting while the run is on its
// way to this replica or in progress elsewhere: 409 says to try again.
func (w *world) again(t testing.TB, execution string) *line {
	t.Helper()
	var l *line
	eventually(t, func() bool {
		resp := w.events(t.Context(), t, userID, execution, "")
		switch resp.StatusCode {
		case http.StatusOK:
			l = listen(resp)
			return true
		case http.StatusConflict:
			if wait := resp.Header.Get("Retry-After"); wait != "1" {
				t.Fatalf("Retry-After is %q", wait)
			}
			_ = resp.Body.Close()
			return false
		}
		t.Fatalf("status %d: %s", resp.StatusCode, drain(t, resp))
		return false
	})
	return l
}

// line is an open stream, of a run or of its events.
type line struct {
	id   string // x-execution-id
	resp *http.Response
	r    *bufio.Reader
	all  strings.Builder
	last string // the newest id line
}

func listen(resp *http.Response) *line {
	return &line{id: resp.Header.Get("x-execution-id"), resp: resp, r: bufio.NewReader(resp.Body)}
}

// propose opens a run that asks for the usual change.
func (w *world) propose(t testing.TB) *line {
	t.Helper()
	return listen(w.open(t.Context(), t, user(changeQuestion)))
}

// block reads the next block without its id line; an error when the stream ends.
func (l *line) block() (string, error) {
	var block strings.Builder
	for {
		text, err := l.r.ReadString('\n')
		l.all.WriteString(text)
		switch {
		case err != nil:
			return "", err
		case text == "\n":
			return block.String(), nil
		case strings.HasPrefix(text, "id: "):
			l.last = strings.TrimSpace(text[4:])
		default:
			block.WriteString(text)
		}
	}
}

// question reads on to the next question; io.EOF when the stream ends before.
func (l *line) question() (*question, error) {
	for {
		block, err := l.block()
		if err != nil {
			return nil, err
		}
		data, ok := strings.CutPrefix(block, "event: interaction_required\ndata: ")
		if !ok {
			continue
		}
		q := &question{block: block}
		if err := json.Unmarshal([]byte(data), q); err != nil {
			return nil, err
		}
		return q, nil
	}
}

func (l *line) asked(t testing.TB) *question {
	t.Helper()
	q, err := l.question()
	if err != nil {
		t.Fatalf("no question comes: %v\n%s", err, &l.all)
	}
	return q
}

// rest reads to the end.
func (l *line) rest(t testing.TB) string {
	t.Helper()
	for {
		if _, err := l.block(); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Errorf("the body does not end cleanly: %v\n%s", err, &l.all)
			}
			_ = l.resp.Body.Close()
			return l.all.String()
		}
	}
}

// hangUp leaves the stream.
func (l *line) hangUp() { _ = l.resp.Body.Close() }

// approve answers everything that a run asks until its stream ends, at some
// replica. It returns the whole stream.
func (w *world) approve(t testing.TB, l *line) string {
	t.Helper()
	for {
		q, err := l.question()
		if errors.Is(err, io.EOF) {
			return l.all.String()
		}
		if err != nil {
			t.Fatalf("%v after\n%s", err, &l.all)
		}
		if status, text := w.answer(t, userID, q, q.reply()); status != http.StatusNoContent {
			t.Fatalf("status %d: %s", status, text)
		}
	}
}

// textOf joins the fragments of a raw stream.
func textOf(raw string) string {
	var text strings.Builder
	for block := range strings.SplitSeq(raw, "\n\n") {
		if strings.HasPrefix(block, "id: ") {
			_, block, _ = strings.Cut(block, "\n")
		}
		if data, ok := strings.CutPrefix(block, "data: "); ok {
			var fragment map[string]string
			if json.Unmarshal([]byte(data), &fragment) == nil {
				text.WriteString(fragment["value"])
			}
		}
	}
	return text.String()
}

// inspect reads and verifies a run's log, with no host at work on the state
// directory.
func (o *office) inspect(t testing.TB, execution string) *run.Report {
	t.Helper()
	report, err := o.lookInto(execution)
	if err != nil {
		t.Fatalf("the log of %s: %v", execution, err)
	}
	return report
}

func (o *office) lookInto(execution string) (*run.Report, error) {
	cfg, err := config.Load(config.Source{Path: o.path, Keyless: true,
		Env: func(name string) (string, bool) { v, ok := o.env[name]; return v, ok }})
	if err != nil {
		return nil, err
	}
	return host.InspectRun(context.Background(), cfg, execution)
}

// kinds are a log's kinds of record, in order.
func kinds(r *run.Report) []string {
	var all []string
	for _, e := range r.Entries {
		all = append(all, e.Kind)
	}
	return all
}

func countKind(r *run.Report, kind string) (n int) {
	for _, e := range r.Entries {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// toolResults are what the model was told last, the newest result at the end.
func toolResults(t testing.TB, m *scripted.Server) []string {
	t.Helper()
	requests := m.Requests()
	for i := len(requests) - 1; i >= 0; i-- {
		if !requests[i].Stream {
			continue
		}
		var body struct {
			Messages []struct{ Role, Content string } `json:"messages"`
		}
		if err := json.Unmarshal(requests[i].Body, &body); err != nil {
			t.Fatal(err)
		}
		var results []string
		for _, m := range body.Messages {
			if m.Role == "tool" {
				results = append(results, m.Content)
			}
		}
		return results
	}
	return nil
}
