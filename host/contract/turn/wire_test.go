package turn

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"weir/host/auth"
	"weir/host/fault"
	"weir/host/run"
	"weir/host/server"
	"weir/host/store/memory"
)

var update = flag.Bool("update", false, "rewrite the expected replies")

// TestWire plays testdata/*.txtar: real HTTP and real sockets in front of an
// engine whose questions say what a run does. The first line of a section's name
// says how the request is sent; the section behind it is what comes back, and
// what the engine was told.
//
//	http user=alice conn=1 …   with the key, as that user
//	loopback conn=1            on the listener without one
//	line conn=1                on a socket
//	process                    to a process of its own, on stdin up to its end
//	get PATH                   a GET on the listener without a key, instead
//
// A clause has the file of its name. Of AgentV's contract 1.8 asks nothing of
// an agent: the file pins what its adapters find.
func TestWire(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var out txtar.Archive
			out.Comment = archive.Comment
			w := newWire(t, string(archive.Comment))
			for _, f := range archive.Files {
				if f.Name == "reply" {
					continue
				}
				reply := w.send(t, f.Name, strings.TrimSuffix(string(f.Data), "\n"))
				out.Files = append(out.Files, f, txtar.File{Name: "reply", Data: []byte(reply)})
			}
			got := string(txtar.Format(&out))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), got); diff != "" {
				t.Errorf("conversation differs (-want +got):\n%s", diff)
			}
		})
	}
}

// wire is a handler behind all of its transports.
type wire struct {
	engine   *engine
	handler  *Handler
	process  func() *Handler   // another process with the same store
	whole    bool              // metadata is shown as it is
	addrs    map[string]string // by transport
	conns    map[string]net.Conn
	readers  map[string]*bufio.Reader
	released bool
}

const wireKey = "a-service-key"

func wireOptions(comment string, ids func() string, keys map[string]ed25519.PublicKey) func(*Options) {
	return func(o *Options) {
		o.NewID = ids
		o.AcceptAuto = strings.Contains(comment, "option accept_auto")
		o.InferSingle = strings.Contains(comment, "option infer")
		if strings.Contains(comment, "option aliases") {
			o.Aliases = []string{"input", "prompt", "task", "message"}
		}
		if strings.Contains(comment, "option impatient") {
			o.AnswerTimeout = time.Second // in which what is not slow has its answer
		}
		for _, policy := range []string{IdentityVerify, IdentityRequire} {
			if strings.Contains(comment, "option identity_"+policy) {
				o.Identity = Identity{Policy: policy, Keys: keys}
			}
		}
	}
}

// newWire reads options from lines "option NAME" of the comment.
func newWire(t *testing.T, comment string) *wire {
	t.Helper()
	w := &wire{engine: newEngine(), addrs: map[string]string{}, conns: map[string]net.Conn{}, readers: map[string]*bufio.Reader{}}
	ids, kept := counter(), memory.New(memory.Options{})
	w.whole = strings.Contains(comment, "option whole")
	keys, _ := identities(t)
	w.process = func() *Handler { return newHandlerOn(t, w.engine, kept, wireOptions(comment, ids, keys)) }
	w.handler = w.process()
	gate, err := auth.New(wireKey)
	if err != nil {
		t.Fatal(err)
	}
	w.serve(t, "http", func(h server.Header) (any, error) {
		c, err := gate.Authenticate(h)
		return run.Request{Principal: run.Principal{UserID: c.UserID()}, RequestID: c.RequestID()}, err
	})
	w.serve(t, "loopback", func(server.Header) (any, error) {
		c := as("agentv:http")
		c.Local = true
		return c, nil
	})
	ln, err := Listen("tcp:127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.addrs["line"] = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	c := as("agentv:tcp")
	c.Local = true
	go func() { done <- w.handler.ServeLines(ctx, ln, c) }()
	t.Cleanup(func() {
		for _, c := range w.conns {
			_ = c.Close()
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *wire) serve(t *testing.T, name string, authenticate func(server.Header) (any, error)) {
	t.Helper()
	s, err := server.New(server.Options{Listen: "127.0.0.1:0", Authenticate: authenticate,
		Routes: []server.Route{{Method: "POST", Path: PathTask, Handle: w.handler.Execute}}})
	if err != nil {
		t.Fatal(err)
	}
	addr, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	w.addrs[name] = addr.String()
	t.Cleanup(func() { s.Stop(context.Background()) })
}

// send sends one request and returns what came of it.
func (w *wire) send(t *testing.T, how, body string) string {
	t.Helper()
	words := strings.Fields(how)
	args := map[string]string{}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		args[name] = value
	}
	if words[0] == "release" {
		if !w.released {
			close(w.engine.release)
		}
		w.released = true
		return ""
	}
	if words[0] == "process" {
		var out strings.Builder
		c := as("agentv:stdio")
		c.Local, c.Process = true, true
		if err := w.process().Lines(t.Context(), strings.NewReader(body), &out, c); err != nil {
			t.Fatal(err)
		}
		return w.shown(out.String())
	}
	if words[0] == "get" {
		resp, err := http.Get("http://" + w.addrs["loopback"] + words[1])
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.Status + "\n"
	}
	name := words[0] + args["conn"]
	if args["conn"] == "" || w.conns[name] == nil {
		c, err := net.Dial("tcp", w.addrs[words[0]])
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if old := w.conns[name]; old != nil {
			_ = old.Close()
		}
		w.conns[name], w.readers[name] = c, bufio.NewReader(c)
	}
	var got string
	if words[0] == "line" {
		got = w.line(t, name, body)
	} else {
		got = w.post(t, name, args, body)
	}
	return w.shown(got)
}

func (w *wire) shown(got string) string {
	if !w.whole {
		got = scrub(got)
	}
	return got + w.engine.told()
}

func (w *wire) line(t *testing.T, name, body string) string {
	t.Helper()
	if _, err := io.WriteString(w.conns[name], body+"\n"); err != nil {
		t.Fatal(err)
	}
	line, err := w.readers[name].ReadString('\n')
	if err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	return line
}

func (w *wire) post(t *testing.T, name string, args map[string]string, body string) string {
	t.Helper()
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", PathTask, len(body))
	if user := args["user"]; user != "" {
		head += "Authorization: Bearer " + wireKey + "\r\nx-authenticated-user-id: " + user + "\r\n"
	}
	for _, h := range []string{"traceparent", "accept"} {
		if args[h] != "" {
			head += h + ": " + args[h] + "\r\n"
		}
	}
	if _, err := io.WriteString(w.conns[name], head+"\r\n"+body); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(w.readers[name], nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s\n%s\n", resp.StatusCode, resp.Header.Get("Content-Type"), strings.TrimRight(string(text), "\n"))
}

// scrub shows of the metadata that is the same in every reply only what differs.
func scrub(text string) string {
	text = regexp.MustCompile(`"tool_dna_hash":"[0-9a-f]{64}"`).ReplaceAllString(text, `"tool_dna_hash":"DNA"`)
	return strings.ReplaceAll(text, `"name":"tester","agent_name":"tester","metadata":{"agent_name":"tester","name":"tester","version":"1.2.3","model":"m",`, `AGENT,"metadata":{AGENT,`)
}

// What is never in a reply, whatever a run does (the document: results are the
// harness's to give).
func TestNoToolOutputs(t *testing.T) {
	h := newHandler(t, newEngine(), nil)
	for _, q := range []string{"say hi", "call a", "call a b", "pause", "fail", "cancel"} {
		m := ask(t, h, as("alice"), `{"task_description":"`+q+`","tool_outputs":["x"]}`)
		for _, name := range sorted(m) {
			if strings.HasPrefix(name, "tool_output") {
				t.Errorf("%s: the reply has %s: %s", q, name, raw(t, m))
			}
		}
		if m["name"] != "tester" || m["agent_name"] != "tester" {
			t.Errorf("%s: %s", q, raw(t, m)) // the control: other members are there
		}
	}
}

// Reading a reply never costs more than a socket's reader takes, and calls are
// never cut.
func TestLineLimit(t *testing.T) {
	h := newHandler(t, newEngine(), nil)
	for name, tt := range map[string]struct {
		r    reply
		want string
	}{
		"short":     {reply{action: actionFinal, text: "short"}, `"summary":"short","content":"short"`},
		"no copy":   {reply{action: actionFinal, text: strings.Repeat("x", 40_000)}, `x","name"`},
		"ASCII":     {reply{action: actionFinal, text: strings.Repeat("x", 200_000)}, `x [shortened]"`},
		"escapes":   {reply{action: actionFinal, text: strings.Repeat("\x01\"", 50_000)}, ` [shortened]"`},
		"UTF-8":     {reply{action: actionPause, text: strings.Repeat("é", 100_000)}, `é [shortened]"`},
		"a summary": {reply{action: actionCall, text: strings.Repeat("y", 100_000), calls: []run.ProposedCall{{Tool: "a", Arguments: []byte(`{"n":1}`)}}}, `"tool_params":{"n":1}`},
		"the calls": {reply{action: actionCall, calls: []run.ProposedCall{{Tool: "a", Arguments: []byte(`{"n":"` + strings.Repeat("z", 70_000) + `"}`)}}}, `"action":"error","message":"the calls do not fit`},
	} {
		b := h.encode(&tt.r, lineLimit)
		if len(b) > lineLimit || !strings.Contains(string(b), tt.want) {
			t.Errorf("%s: %d bytes, %.200s", name, len(b), b)
		}
	}
	if b := h.encode(&reply{action: actionFinal, text: strings.Repeat("x", 200_000)}, 0); len(b) < 400_000 {
		t.Errorf("without a limit: %d bytes", len(b))
	}
}

// Only addresses that this machine alone can reach, since nobody is
// authenticated there.
func TestListen(t *testing.T) {
	dir := t.TempDir()
	for _, address := range []string{"tcp:127.0.0.1:0", "tcp:localhost:0", "tcp://[::1]:0", "socket://tcp:127.0.0.1:0", "socket://127.0.0.1:0", "socket://" + dir + "/c", "unix:" + dir + "/a", "unix://" + dir + "/b", "unix:" + dir + "/a"} {
		ln, err := Listen(address)
		if err != nil && strings.Contains(address, "::1") {
			t.Logf("%s: %v", address, err) // a machine without IPv6
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if ln.Addr().Network() == "unix" {
			info, err := os.Stat(ln.Addr().String())
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", address, info.Mode(), err)
			}
			if _, err := Listen(address); fault.Of(err) != fault.Unavailable {
				t.Errorf("%s while it is served: %v", address, err)
			}
			ln.(*net.UnixListener).SetUnlinkOnClose(false) // what a killed process leaves
		}
		_ = ln.Close()
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"", "tcp:0.0.0.0:9000", "tcp::9000", "tcp:10.0.0.1:1", "tcp:example.org:1", "unix:", "http://127.0.0.1:1", "127.0.0.1:1", dir + "/d", "socket://", "socket://0.0.0.0:1", "unix:" + dir + "/file"} {
		if ln, err := Listen(address); fault.Of(err) != fault.Invalid {
			_ = ln.Close()
			t.Errorf("%s: %v", address, err)
		}
	}
}

// 1.6: a line or everything up to the end, many lines, blank ones; one JSON
// document for each and nothing else.
func TestLines(t *testing.T) {
	for in, want := range map[string]int{
		`{"task_description":"say hi"}`: 1, `{"task_description":"say hi"}` + "\n\n" + `{"task_description":"say ho"}` + "\r\n": 2, "": 0, "\n": 0, "garbage": 1,
		`{"task_description":"` + strings.Repeat("x", maxLine) + `"}`: 1,
	} {
		h := newHandler(t, newEngine(), nil)
		var out strings.Builder
		c := as("agentv:stdio")
		c.Local, c.Process = true, true
		_ = h.Lines(t.Context(), strings.NewReader(in), &out, c) // a line beyond the bound is an error too
		got := strings.SplitAfter(out.String(), "\n")
		if len(got)-1 != want || got[len(got)-1] != "" {
			t.Errorf("%.40q: got %q", in, got)
		}
		for _, line := range got[:len(got)-1] {
			if !strings.HasPrefix(line, `{"action":"`) {
				t.Errorf("%.40q: got %q", in, line)
			}
		}
	}
}
