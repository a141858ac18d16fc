package stream_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/host/benchtest"
	"weir/host/contract/stream"
	"weir/host/fault"
	"weir/host/logtest"
	"weir/host/run"
	"weir/host/server"
)

// idle is a run that begins, shows nothing more and waits for its end. It tells
// when it began and with which cause it ended.
type idle struct {
	runner // nothing to follow and nothing to answer
	began  chan struct{}
	ended  chan string // the cause's code
}

func newIdle(n int) *idle {
	return &idle{began: make(chan struct{}, n), ended: make(chan string, n)}
}

func (i *idle) Run(ctx context.Context, _ run.Request, out run.Observer, over func()) {
	defer over()
	out.Started(info)
	i.began <- struct{}{}
	<-ctx.Done()
	i.ended <- fault.CodeOf(context.Cause(ctx))
}

// Faults H4 and S11: the run of a client that left ends within 300 ms, although
// nothing is written, with a cause that says so.
func TestClientLeaves(t *testing.T) {
	leave := map[string]func(*net.TCPConn){
		"closes":          func(c *net.TCPConn) { _ = c.Close() },
		"closes one half": func(c *net.TCPConn) { _ = c.CloseWrite() },
		"resets":          func(c *net.TCPConn) { _ = c.SetLinger(0); _ = c.Close() },
		"closes behind unread bytes": func(c *net.TCPConn) {
			_, _ = io.WriteString(c, "GET /version HTTP/1.1\r\n")
			_ = c.CloseWrite()
		},
	}
	for name, act := range leave {
		t.Run(name, func(t *testing.T) {
			i := newIdle(1)
			h := start(t, i, stream.Options{}, server.Options{})
			took := benchtest.Best(5, 300*time.Millisecond, func() time.Duration {
				c, _ := h.ask(t)
				<-i.began
				left := time.Now()
				act(c.(*net.TCPConn))
				if code := <-i.ended; code != stream.CodeClientGone {
					t.Errorf("the cause is %q", code)
				}
				return time.Since(left)
			})
			if took > 300*time.Millisecond {
				t.Errorf("the run ended after %v, want 300 ms", took)
			}
			until(t, "the stream is forgotten", func() bool { return h.handler.Open() == 0 })
		})
	}
}

// The control beside it: a client that stays and sends nothing keeps its run.
func TestClientStays(t *testing.T) {
	i := newIdle(1)
	h := start(t, i, stream.Options{}, server.Options{})
	c, _ := h.ask(t)
	<-i.began
	select {
	case code := <-i.ended:
		t.Fatalf("the run ended: %s", code)
	case <-time.After(400 * time.Millisecond):
	}
	_ = c.Close()
	<-i.ended
}

// Fault S11: 200 idle streams whose clients are gone leave nothing behind
// (goroutines: TestMain).
func TestManyClientsLeave(t *testing.T) {
	const n = 200
	i := newIdle(n)
	h := start(t, i, stream.Options{}, server.Options{})
	conns := make([]net.Conn, n)
	for k := range conns {
		conns[k], _ = h.ask(t)
	}
	for range n {
		<-i.began
	}
	if got := h.handler.Open(); got != n {
		t.Errorf("%d streams are open, want %d", got, n)
	}
	for _, c := range conns {
		_ = c.Close()
	}
	for range n {
		<-i.ended
	}
	until(t, "all streams are forgotten", func() bool { return h.handler.Open() == 0 })
}

// Faults S11 and H5: a client that does not read blocks its run, not the
// memory, and is cut after the stall limit.
func TestClientDoesNotRead(t *testing.T) {
	var mu sync.Mutex
	shown, code := 0, make(chan string, 1)
	text := strings.Repeat("x", 16<<10)
	h := start(t, runner(func(ctx context.Context, _ run.Request, out run.Observer) {
		out.Started(info)
		for ctx.Err() == nil {
			out.Text(text)
			mu.Lock()
			shown++
			mu.Unlock()
		}
		code <- fault.CodeOf(context.Cause(ctx))
	}), stream.Options{}, server.Options{Stall: 500 * time.Millisecond})
	begin := time.Now()
	h.ask(t)
	if got := <-code; got != stream.CodeClientGone {
		t.Errorf("the cause is %q", got)
	}
	if took := time.Since(begin); took < 500*time.Millisecond {
		t.Errorf("cut after %v, before the limit", took)
	}
	mu.Lock()
	defer mu.Unlock()
	if bytes := shown * len(text); bytes > 32<<20 {
		t.Errorf("%d bytes were taken from the run for a client that reads none", bytes)
	}
}

// A client that neither reads nor closes but says that it will send no more
// has left as well: its writer does not wait for the stall limit.
func TestClientLeavesUnread(t *testing.T) {
	full := make(chan struct{})
	h := start(t, runner(func(ctx context.Context, _ run.Request, out run.Observer) {
		out.Started(info)
		text := strings.Repeat("x", 64<<10)
		for n := 0; ctx.Err() == nil; n++ {
			if n == 200 { // more than the socket's buffers hold
				close(full)
			}
			out.Text(text)
		}
	}), stream.Options{}, server.Options{})
	c, _ := h.ask(t)
	until(t, "the stream is open", func() bool { return h.handler.Open() == 1 })
	select {
	case <-full:
	case <-time.After(500 * time.Millisecond): // the backlog is full before that
	}
	_ = c.(*net.TCPConn).CloseWrite()
	until(t, "the run is forgotten", func() bool { return h.handler.Open() == 0 })
	begin := time.Now()
	h.server.Stop(context.Background())
	if took := time.Since(begin); took > 20*time.Second { // the stall limit is 30 s
		t.Errorf("the writer was held for %v", took)
	}
}

// Each event reaches the client by itself, the head before the first.
func TestFlushPerEvent(t *testing.T) {
	next := make(chan struct{})
	h := start(t, runner(func(_ context.Context, _ run.Request, out run.Observer) {
		<-next
		out.Started(info)
		for k := range 3 {
			<-next
			out.Text(fmt.Sprint(k))
		}
		<-next
		out.Ended(info)
	}), stream.Options{}, server.Options{})
	_, r := h.ask(t)
	body := bufio.NewReader(response(t, r).Body) // before anything was shown
	for _, want := range []string{"WORKFLOW_START", `"0"`, `"1"`, `"2"`, "WORKFLOW_END"} {
		next <- struct{}{}
		line, err := body.ReadString('\n')
		if err != nil || !strings.Contains(line, want) {
			t.Fatalf("got %q (%v), want %s", line, err, want)
		}
		if blank, _ := body.ReadString('\n'); blank != "\n" {
			t.Fatalf("after the block: %q", blank)
		}
	}
	if rest, err := io.ReadAll(body); len(rest) > 0 || err != nil {
		t.Errorf("after the end: %q, %v", rest, err)
	}
}

// Events larger than any buffer on the way arrive whole.
func TestLargeEvents(t *testing.T) {
	text := strings.Repeat("é€😀 ", 100_000)
	h := start(t, runner(func(_ context.Context, _ run.Request, out run.Observer) {
		out.Started(info)
		out.Text(text)
		out.Ended(info)
	}), stream.Options{}, server.Options{})
	if got := h.whole(t); !strings.Contains(got, `data: {"value":"`+text+`"}`+"\n\n") {
		t.Errorf("the text is not in %d bytes of stream", len(got))
	}
}

// Section 13.1, row 14: beyond the limit 503 before the stream opens; a place
// is free again when a run has ended.
func TestCapacity(t *testing.T) {
	i := newIdle(3)
	h := start(t, i, stream.Options{MaxRuns: 2}, server.Options{})
	first, _ := h.ask(t)
	<-i.began
	h.ask(t)
	<-i.began
	_, r := h.ask(t)
	resp := response(t, r)
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 503 || string(body) != `{"error":"the agent is at capacity"}` || resp.Header.Get("Retry-After") != "1" ||
		resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %d %v %s", resp.StatusCode, resp.Header, body)
	}
	_ = first.Close()
	<-i.ended
	until(t, "a place is free", func() bool { return h.handler.Open() == 1 })
	h.ask(t)
	<-i.began
}

// Fault H6: at shutdown an open stream gets the drain time, then the error
// block and WORKFLOW_END, and ends as HTTP wants it.
func TestShutdownEndsStreams(t *testing.T) {
	i := newIdle(1)
	h := start(t, i, stream.Options{}, server.Options{Drain: 100 * time.Millisecond, Grace: time.Minute})
	_, r := h.ask(t)
	<-i.began
	begin := time.Now()
	stopped := make(chan struct{})
	go func() { defer close(stopped); h.server.Stop(context.Background()) }()
	body, err := io.ReadAll(response(t, r).Body)
	if err != nil {
		t.Errorf("the stream does not end cleanly: %v", err)
	}
	wantKinds(t, string(body), "WORKFLOW_START error WORKFLOW_END")
	if !strings.Contains(string(body), `{"error":"workflow_error","message":"The agent run failed."}`) {
		t.Errorf("the error block: %s", body)
	}
	if took := time.Since(begin); took < 100*time.Millisecond {
		t.Errorf("cut after %v, before the drain time is over", took)
	}
	if code := <-i.ended; code != stream.CodeDrain {
		t.Errorf("the cause is %q", code)
	}
	<-stopped
}

// A run that ends within the drain time ends as always.
func TestShutdownWaitsForRuns(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	h := start(t, runner(func(_ context.Context, _ run.Request, out run.Observer) {
		out.Started(info)
		close(began)
		<-goOn
		out.Text("whole")
		out.Ended(info)
	}), stream.Options{}, server.Options{Drain: time.Minute})
	_, r := h.ask(t)
	<-began
	stopped := make(chan struct{})
	go func() { defer close(stopped); h.server.Stop(context.Background()) }()
	close(goOn)
	body, err := io.ReadAll(response(t, r).Body)
	if err != nil {
		t.Error(err)
	}
	wantKinds(t, string(body), "WORKFLOW_START data WORKFLOW_END")
	<-stopped
}

// A request that comes when streams were interrupted finds no room.
func TestDrainedRefuses(t *testing.T) {
	h := start(t, newIdle(1), stream.Options{}, server.Options{})
	h.handler.Drain()
	_, r := h.ask(t)
	if got := response(t, r).StatusCode; got != 503 {
		t.Errorf("status %d", got)
	}
}

// A panic never reaches the client, the process or, with its text, the log.
func TestPanicIsLoggedByClass(t *testing.T) {
	var log logtest.Buffer
	h := start(t, runner(func(context.Context, run.Request, run.Observer) { panic("text of alice") }),
		stream.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, server.Options{})
	wantKinds(t, h.whole(t), "WORKFLOW_START error WORKFLOW_END")
	// The run here ends its stream as it unwinds, and is recovered after that.
	until(t, "the class is in the log", func() bool { return strings.Contains(log.String(), "class=string") })
	if got := log.String(); strings.Contains(got, "alice") {
		t.Errorf("log: %s", got)
	}
}

// Bytes of a request are reused once its handler returned; what a run holds
// must not change under it.
func TestRequestsDoNotMix(t *testing.T) {
	h := start(t, runner(func(_ context.Context, req run.Request, out run.Observer) {
		out.Started(info)
		for range 50 {
			out.Text(req.Turns[0].Content + req.Principal.UserID + "\n")
		}
		out.Ended(info)
	}), stream.Options{}, server.Options{})
	var wg sync.WaitGroup
	for k := range 20 {
		wg.Go(func() {
			c, err := net.Dial("tcp", h.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			r := bufio.NewReader(c)
			for n := range 5 {
				id := fmt.Sprintf("%03d-%03d", k, n)
				_, _ = c.Write(crlf("POST /v1/workflow/full?filter_steps= HTTP/1.1\nHost: a\nAuthorization: Bearer key\n" +
					"x-authenticated-user-id: u" + id + "\n\n" + `{"messages":[{"role":"user","content":"c` + id + `"}]}` + "\n"))
				body, err := io.ReadAll(response(t, r).Body)
				want := strings.Repeat(`data: {"value":"c`+id+`u`+id+`\n"}`+"\n\n", 50)
				if err != nil || string(body) != want {
					t.Errorf("%s: %v\n%s", id, err, body)
				}
			}
		})
	}
	wg.Wait()
}

func TestOptionsAreChecked(t *testing.T) {
	ok := stream.Options{Workflow: "w", Version: version}
	if _, err := stream.New(newIdle(0), ok); err != nil {
		t.Errorf("control: %v", err)
	}
	for name, change := range map[string]func(*stream.Options){
		"no workflow": func(o *stream.Options) { o.Workflow = "" },
		"no version":  func(o *stream.Options) { o.Version = nil },
		"runs":        func(o *stream.Options) { o.MaxRuns = -1 },
		"keep-alive":  func(o *stream.Options) { o.KeepAlive = -1 },
	} {
		opts := ok
		change(&opts)
		if _, err := stream.New(newIdle(0), opts); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
