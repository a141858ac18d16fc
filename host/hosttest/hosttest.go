// Package hosttest is for the tests and benchmarks of everything that needs a
// whole host: it starts one with neighbours on loopback, writes its policy in
// variants, asks it over HTTP and tells which generation answered.
package hosttest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"weir/abi"
	"weir/host"
	"weir/host/logtest"
	"weir/host/plugin/plugintest"
)

// Keys of a world.
const (
	ServiceKey = "hosttest-service-key"
	AdminKey   = "hosttest-admin-key-of-24-and-more"
)

// Options say in what a world differs from the usual one.
type Options struct {
	// Config is appended to the policy's agent.toml.
	Config string
	// Env is added to the environment.
	Env map[string]string
	// Watch leaves the files watched; else only explicit reloads count.
	Watch bool
	// Write writes the first policy; nil: variant "a" of [World.Variant].
	Write func(*World)
}

// World is a running host and its neighbours.
type World struct {
	Host  *host.Host
	URL   string
	Dir   string
	Desk  *Desk
	Model *Model
	Log   *logtest.Buffer // what the host logged

	opts   Options
	client *http.Client
	stop   func() error
}

// Start starts a world. It ends with the test.
func Start(t testing.TB, opts Options) *World {
	t.Helper()
	w := Prepare(t, opts)
	if err := w.Boot(t); err != nil {
		t.Fatal(err)
	}
	return w
}

// Prepare makes everything but the host, so that a test may change files first.
func Prepare(t testing.TB, opts Options) *World {
	t.Helper()
	w := &World{Dir: t.TempDir(), Desk: NewDesk(t), Model: newModel(t), Log: &logtest.Buffer{}, opts: opts,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	t.Cleanup(w.client.CloseIdleConnections)
	if opts.Write != nil {
		opts.Write(w)
	} else {
		w.Variant(t, "a")
	}
	return w
}

// Env is the environment of the world's host.
func (w *World) Env() map[string]string {
	env := map[string]string{
		"NAT_GATEWAY_API_KEY": ServiceKey, "MCP_API_KEY": deskKey, "AGENT_BIND_ADDRESS": "127.0.0.1:0",
		"TICKETS_MCP_URL": w.Desk.URL + "/mcp", "LLM_BASE_URL": w.Model.URL + "/v1",
	}
	maps.Copy(env, w.opts.Env)
	return env
}

// Boot starts the host; it is stopped at the end of the test.
func (w *World) Boot(t testing.TB) error {
	t.Helper()
	h, err := host.Start(context.Background(), w.Options(w.Env(), nil, nil))
	if err != nil {
		return err
	}
	w.Host, w.URL = h, "http://"+h.Addr().String()
	w.stop = sync.OnceValue(func() error { return h.Stop(context.Background()) })
	t.Cleanup(func() { w.Stop(t) })
	return nil
}

// Stop stops the host before the test ends.
func (w *World) Stop(t testing.TB) {
	t.Helper()
	if err := w.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// Options are what the world's host is started with.
func (w *World) Options(env map[string]string, hangup <-chan os.Signal, started func(address string)) host.Options {
	return host.Options{ConfigPath: w.ConfigPath(), Hangup: hangup,
		Env:    func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Logger: slog.New(slog.NewTextHandler(w.Log, nil)),
		Started: func(addr net.Addr) {
			if started != nil {
				started(addr.String())
			}
		}}
}

// ConfigPath is agent.toml's.
func (w *World) ConfigPath() string { return filepath.Join(w.Dir, "agent.toml") }

// Variant writes a policy whose every part carries the name: the workflow's
// answer, the guard's decision, a prompt and the configuration. Its modules are
// written by hand and small, so that loading them costs little.
func (w *World) Variant(t testing.TB, name string) {
	t.Helper()
	w.WriteFile(t, "plugins/flow.wasm", Workflow("answer-"+name))
	w.WriteFile(t, "plugins/screen.wasm", Guard(name))
	w.WriteFile(t, "prompts/system.md", []byte("You are variant "+name+".\n"))
	w.WriteFile(t, "agent.toml", []byte(w.Config(t, name)))
}

// Config is a variant's agent.toml.
func (w *World) Config(t testing.TB, name string) string {
	return fmt.Sprintf(`
[agent]
workflow = "flow"
[server]
drain = "300ms"
[reload]
watch = %v
settle = "20ms"
[tools.mcp]
include = ["search_tickets"]
connect_attempts = 2
connect_interval = "10ms"
[prompts]
system = "prompts/system.md"
[guard]
block_message = "blocked by %s"
[plugins]
dir = "plugins"
cache = '%s'
[plugins.flow]
prompts = ["system"]
[plugins.screen]
`, w.opts.Watch, name, plugintest.CacheDir(t)) + w.opts.Config
}

// Workflow is a module that answers every event with a text.
func Workflow(text string) []byte {
	reply := abi.StepReply{Action: abi.Action{Type: abi.ActionAnswer, Text: text}}
	return plugintest.NewGuest().Answer(abi.HookStep, string(reply.AppendJSON(nil))).Build()
}

// Guard is a module that allows every question and names itself in its
// decision.
func Guard(variant string) []byte {
	verdict := abi.Verdict{Verdict: abi.VerdictAllow, Decision: abi.Raw(`{"variant":"` + variant + `"}`)}
	return plugintest.NewGuest().Answer(abi.HookCheckInput, string(verdict.AppendJSON(nil))).Build()
}

// WriteFile replaces a file of the world in one step.
func (w *World) WriteFile(t testing.TB, name string, data []byte) {
	t.Helper()
	path := filepath.Join(w.Dir, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ReadFile returns a file of the world.
func (w *World) ReadFile(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.Dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Answer is what a client saw of one run.
type Answer struct {
	Generations []string // every one that the response names, each once
	Variant     string   // that the metadata name; empty: none
	Text        string
	Raw         string
}

var (
	generation = regexp.MustCompile(`"generation":"([0-9a-f]{64})"`)
	assigned   = regexp.MustCompile(`"generation":"[0-9a-f]{64}","variant":"([a-z0-9-]+)"`)
	piece      = regexp.MustCompile(`(?m)^data: \{"value":"([^"]*)"\}$`)
)

// Ask sends one question. Everything but a complete answer is an error.
func (w *World) Ask(ctx context.Context, question string) (Answer, error) {
	return w.AskAll(ctx, fmt.Sprintf(`{"messages":[{"role":"user","content":%q}]}`, question))
}

// AskAll sends a whole request body.
func (w *World) AskAll(ctx context.Context, body string) (Answer, error) {
	return w.AskAs(ctx, "someone", body)
}

// AskAs is AskAll of a user of that id.
func (w *World) AskAs(ctx context.Context, user, body string) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL+"/v1/workflow/full", strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+ServiceKey)
	req.Header.Set("x-authenticated-user-id", user)
	resp, err := w.client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Raw: string(raw)}
	if resp.StatusCode != http.StatusOK || bytes.Contains(raw, []byte("workflow_error")) || !bytes.Contains(raw, []byte("WORKFLOW_END")) {
		return a, fmt.Errorf("status %d: %s", resp.StatusCode, raw)
	}
	seen := map[string]bool{}
	for _, m := range generation.FindAllStringSubmatch(a.Raw, -1) {
		if !seen[m[1]] {
			seen[m[1]] = true
			a.Generations = append(a.Generations, m[1])
		}
	}
	if m := assigned.FindStringSubmatch(a.Raw); m != nil {
		a.Variant = m[1]
	}
	for _, m := range piece.FindAllStringSubmatch(a.Raw, -1) {
		a.Text += m[1]
	}
	return a, nil
}

// Get asks a route of the service and returns its body.
func (w *World) Get(t testing.TB, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+ServiceKey)
	req.Header.Set("x-authenticated-user-id", "someone")
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Model is a model endpoint that remembers what it was asked and always
// answers the same.
type Model struct {
	URL string

	mu      sync.Mutex
	asked   []string
	arrived chan struct{}
	answer  chan struct{}
}

// Hold makes the model keep its answers until answer is closed; arrived is
// closed with the first request.
func (m *Model) Hold() (arrived <-chan struct{}, answer chan<- struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.arrived, m.answer = make(chan struct{}), make(chan struct{})
	return m.arrived, m.answer
}

func newModel(t testing.TB) *Model {
	m := &Model{}
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	m.URL = s.URL
	return m
}

func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	m.asked = append(m.asked, string(body))
	answer := m.answer
	if m.arrived != nil {
		close(m.arrived)
		m.arrived = nil
	}
	m.mu.Unlock()
	if answer != nil {
		select {
		case <-answer:
		case <-r.Context().Done():
			return
		}
	}
	if !bytes.Contains(body, []byte(`"stream":true`)) {
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"No"},"finish_reason":"stop"}]}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"from the model"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
}

// Asked returns the request bodies so far, and forgets them.
func (m *Model) Asked() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := m.asked
	m.asked = nil
	return asked
}
