package registry

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"weir/host/fault"
	"weir/host/logtest"
	"weir/host/porttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const endpoint = "http://support-tickets-agent.agents.svc.cluster.local"

// record is a log that may be read while it is written.
type record struct{ logtest.Buffer }

func (r *record) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

// quick has the times of a test; what they are by default is TestTimes.
func quick(url string, log *record) Options {
	return Options{URL: url, Endpoint: endpoint, Delay: time.Millisecond, Interval: time.Millisecond,
		Attempts: MinAttempts, Timeout: time.Minute, Logger: log.logger()}
}

// register starts, waits for the end and returns the log.
func register(t *testing.T, opts Options, log *record) string {
	t.Helper()
	r, err := Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	<-r.done
	if err := r.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	return log.String()
}

// Section 5.2 of the platform's specification: the request's form.
func TestRequest(t *testing.T) {
	for _, suffix := range []string{"", "/", "/base", "/base/"} {
		var seen string
		gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			seen = r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("Content-Type") + " " + string(body)
		}))
		log := &record{}
		out := register(t, quick(gateway.URL+suffix, log), log)
		gateway.Close()
		want := "POST " + strings.TrimSuffix(suffix, "/") + "/agents/register-url application/json " + `{"endpoint":"` + endpoint + `"}`
		if seen != want {
			t.Errorf("%q: the gateway saw %q, want %q", suffix, seen, want)
		}
		if strings.Count(out, "\n") != 1 || !strings.Contains(out, "level=INFO") || !strings.Contains(out, "attempt=1") {
			t.Errorf("%q: log:\n%s", suffix, out)
		}
	}
}

// Sections 5.3 and 5.4: a peer that refuses the connection, answers errors,
// hangs, answers a redirect, never ends its answer, and at last accepts.
func TestPeers(t *testing.T) {
	var others atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { others.Add(1) }))
	defer elsewhere.Close()
	const canary = "words-of-the-gateway"
	tests := []struct {
		name     string
		answer   func(w http.ResponseWriter, r *http.Request, n int32)
		attempts int32
		want     string // of the last line
	}{
		{"accepts", func(http.ResponseWriter, *http.Request, int32) {}, 1, "level=INFO"},
		{"accepts with 201", func(w http.ResponseWriter, _ *http.Request, _ int32) { w.WriteHeader(201) }, 1, "level=INFO"},
		{"accepts at last", func(w http.ResponseWriter, _ *http.Request, n int32) {
			if n < 3 {
				w.WriteHeader(503)
			}
		}, 3, "level=INFO"},
		{"refuses", func(w http.ResponseWriter, _ *http.Request, _ int32) {
			http.Error(w, canary, http.StatusUnprocessableEntity)
		}, 3, "expected status 2xx, got 422"},
		{"redirects", func(w http.ResponseWriter, r *http.Request, _ int32) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, 3, "got 307: redirects are not followed"},
		{"hangs", func(_ http.ResponseWriter, r *http.Request, _ int32) { <-r.Context().Done() }, 3, "level=ERROR"},
		{"hangs, then accepts", func(_ http.ResponseWriter, r *http.Request, n int32) {
			if n == 1 {
				<-r.Context().Done()
			}
		}, 2, "level=INFO"},
		{"answers without an end", func(w http.ResponseWriter, r *http.Request, _ int32) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat(canary, 1000)); err != nil {
					return
				}
			}
		}, 1, "level=INFO"},
		{"breaks off", func(http.ResponseWriter, *http.Request, int32) { panic(http.ErrAbortHandler) }, 3, "level=ERROR"},
		{"answers a huge head", func(w http.ResponseWriter, _ *http.Request, _ int32) {
			w.Header().Set("x", strings.Repeat(canary, 4<<10))
		}, 3, "level=ERROR"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var n atomic.Int32
			gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // the server sees a client leave once the body is read
				tt.answer(w, r, n.Add(1))
			}))
			defer gateway.Close()
			log := &record{}
			opts := quick(gateway.URL, log)
			if strings.HasPrefix(tt.name, "hangs") {
				opts.Timeout = time.Second // in which each attempt must get there
			}
			out := register(t, opts, log)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if n.Load() != tt.attempts || len(lines) != int(tt.attempts) || !strings.Contains(lines[len(lines)-1], tt.want) {
				t.Errorf("%d attempts, want %d and %q; log:\n%s", n.Load(), tt.attempts, tt.want, out)
			}
			if strings.Count(out, "level=ERROR") > 1 || strings.Contains(out, canary) {
				t.Errorf("log:\n%s", out)
			}
		})
	}
	if others.Load() > 0 {
		t.Error("a redirect was followed")
	}
}

// A port at which nobody listens.
func TestNobodyThere(t *testing.T) {
	url := "http://" + porttest.Free(t, 1)[0]
	log := &record{}
	out := register(t, quick(url, log), log)
	if strings.Count(out, "level=WARN") != 2 || strings.Count(out, "level=ERROR") != 1 {
		t.Errorf("log:\n%s", out)
	}
}

// Section 5.5: without a gateway one line at INFO, and no goroutine.
func TestSkips(t *testing.T) {
	for _, url := range []string{"", "  "} {
		log := &record{}
		out := register(t, Options{URL: url, Logger: log.logger()}, log)
		if strings.Count(out, "\n") != 1 || !strings.Contains(out, "level=INFO") {
			t.Errorf("%q: log:\n%s", url, out)
		}
	}
}

func TestOptions(t *testing.T) {
	good := Options{URL: "http://gateway", Endpoint: endpoint}
	for name, tt := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"control":         {func(*Options) {}, ""},
		"password":        {func(o *Options) { o.URL = "http://u:canary@gateway" }, "registry: URL: expected "},
		"user":            {func(o *Options) { o.URL = "http://canary@gateway" }, "registry: URL: expected "},
		"query":           {func(o *Options) { o.URL = "http://gateway?key=canary" }, "registry: URL: expected "},
		"empty query":     {func(o *Options) { o.URL = "http://gateway?" }, "registry: URL: expected "},
		"scheme":          {func(o *Options) { o.URL = "ftp://gateway" }, "registry: URL: expected "},
		"no host":         {func(o *Options) { o.URL = "http://" }, "registry: URL: expected "},
		"no endpoint":     {func(o *Options) { o.Endpoint = "" }, "registry: endpoint: expected "},
		"endpoint's user": {func(o *Options) { o.Endpoint = "http://canary@self" }, "registry: endpoint: expected "},
		"few attempts":    {func(o *Options) { o.Attempts = 2 }, "registry: attempts: expected at least 3, got 2"},
		"negative":        {func(o *Options) { o.Delay = -1 }, "registry: times: expected "},
	} {
		opts := good
		tt.change(&opts)
		r, err := Start(opts)
		if err == nil {
			if err := r.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			if tt.want != "" {
				t.Errorf("%s: started", name)
			}
			continue
		}
		if !strings.HasPrefix(err.Error(), tt.want) || tt.want == "" || fault.Of(err) != fault.Invalid || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// Stop ends an attempt that hangs at once, and the wait before one as well; it
// may be called twice and logs nothing.
func TestStop(t *testing.T) {
	entered := make(chan struct{}, 1)
	gateway := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		entered <- struct{}{}
		<-r.Context().Done()
	}))
	defer gateway.Close()
	for _, waiting := range []bool{false, true} {
		log := &record{}
		opts := quick(gateway.URL, log)
		opts.Timeout = time.Hour
		if waiting {
			opts.Delay = time.Hour
		}
		r, err := Start(opts)
		if err != nil {
			t.Fatal(err)
		}
		if !waiting {
			<-entered
		}
		for range 2 {
			if err := r.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if log.String() != "" {
			t.Errorf("log:\n%s", log)
		}
	}
}

// Stop's own bound is its context.
func TestStopIsBounded(t *testing.T) {
	r := &Registration{cancel: func(error) {}, done: make(chan struct{})} // one that never ends
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Stop(ctx); err == nil {
		t.Error("Stop did not say that it gave up")
	}
}

// Section 5.3: the first attempt after 2 s, the next 5 s after the end of the
// one before. HTTP over pipes, in the bubble's own time.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Duration
		begin, pipes := time.Now(), newPipes()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			at = append(at, time.Since(begin))
			n := len(at)
			mu.Unlock()
			_, _ = io.Copy(io.Discard, r.Body)
			switch n {
			case 1:
				w.WriteHeader(500)
			case 2:
				time.Sleep(4 * time.Second) // late, and no
				w.WriteHeader(500)
			case 3:
				time.Sleep(time.Minute) // the client gives up after 10 s
			}
		})}
		served := make(chan struct{})
		go func() { defer close(served); _ = server.Serve(pipes) }()
		log := &record{}
		transport := newTransport()
		transport.DialContext = pipes.dial
		r := start(Options{URL: "http://gateway", Endpoint: endpoint, Logger: log.logger()}.withDefaults(), transport)
		<-r.done
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		want := []time.Duration{2 * time.Second, 7 * time.Second, 16 * time.Second, 31 * time.Second}
		if len(at) != len(want) {
			t.Fatalf("attempts at %v, want %v", at, want)
		}
		for i := range want {
			if at[i] != want[i] {
				t.Errorf("attempt %d at %v, want %v", i+1, at[i], want[i])
			}
		}
		if !strings.Contains(log.String(), "registered with the agent gateway") {
			t.Errorf("log:\n%s", log)
		}
		_ = server.Close()
		<-served
	})
}

// pipes is a listener whose connections are made in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.closed) }); return nil }

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }
