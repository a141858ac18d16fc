package e2e

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"weir/cmd/weir-demo/internal/scripted"
	"weir/cmd/weir-demo/internal/tickets"
	"weir/host"
	"weir/host/logtest"
	"weir/host/plugin/plugintest"
)

func TestMain(m *testing.M) {
	if point, ok := os.LookupEnv(diesAt); ok {
		os.Exit(serveUntil(point))
	}
	code := m.Run()
	stopCommon()
	client.CloseIdleConnections()
	if bin.dir != "" {
		_ = os.RemoveAll(bin.dir)
	}
	if code == 0 {
		// The HTTP library's pool of workers sleeps for up to ten seconds after its end.
		err := goleak.Find(goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
			goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
		if err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}

// Secrets and identities. Each is a canary: none may turn up where a test looks
// for it.
const (
	serviceKey = "canary-service-key-7f3a"
	mcpKey     = "canary-mcp-key-91bd"
	modelKey   = "canary-model-key-c04e"
	userID     = "canary-user-4411"
	userName   = "Canary Username"
	userEmail  = "canary.mail@example.org"
	approval   = "canary-approval-secret-of-many-characters"
)

// client follows no redirect and keeps no cookie, as the gateway does.
var client = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: 256},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// modules are the shipped plugins.
var modules = []string{"react", "input-screen", "output-secrets", "output-pii", "tool-injection"}

// deployment writes the shipped configuration, prompts and modules to a folder
// and returns the path of agent.toml.
func deployment(t testing.TB, edit func(string) string, extra map[string][]byte) string {
	t.Helper()
	dir, root := t.TempDir(), plugintest.Root(t)
	if err := os.CopyFS(filepath.Join(dir, "prompts"), os.DirFS(filepath.Join(root, "prompts"))); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "agent.toml"))
	if err != nil {
		t.Fatal(err)
	}
	config := replace(t, string(text), "[plugins]\n", "[plugins]\ncache = '"+plugintest.CacheDir(t)+"'\n")
	config = replace(t, config, "[server]\n", "[server]\ndrain = \"300ms\"\n")
	config = replace(t, config, "# connect_attempts = 15 ", "connect_attempts = 2")
	config = replace(t, config, "# connect_interval = \"2s\"", "connect_interval = \"10ms\"")
	config = replace(t, config, "# max_per_user = 64 ", "max_per_user = 256 ") // everybody here is one user
	config = replace(t, config, `# timeout = "0s"  `, `timeout = "20s"  `)     // a busy machine is no failure of a plugin
	if edit != nil {
		config = edit(config)
	}
	path := filepath.Join(dir, "agent.toml")
	write(t, path, []byte(config))
	for _, name := range modules {
		write(t, filepath.Join(dir, "plugins", "dist", name+".wasm"), plugintest.Build(t, "plugins/"+name))
	}
	for name, wasm := range extra {
		write(t, filepath.Join(dir, "plugins", "dist", name+".wasm"), wasm)
	}
	return path
}

// replace is strings.Replace that must find what it replaces.
func replace(t testing.TB, text, old, new string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("the configuration lacks %q", old)
	}
	return strings.Replace(text, old, new, 1)
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// setup says in what a world differs from the shipped one.
type setup struct {
	config  func(string) string // edits agent.toml
	env     map[string]string
	modules map[string][]byte // beside the shipped ones
	only    []string          // keeps these plugins of the shipped ones; nil keeps all
	model   http.Handler      // default: the scripted one
	desk    http.Handler      // default: the tickets
}

// edit is config after the plugins that are not wanted have been taken out: a
// start costs a second, most of which is theirs.
func (s setup) edit(t testing.TB) func(string) string {
	return func(c string) string {
		before, rest, ok := strings.Cut(c, "# The agent's loop, named by")
		plugins, after, end := strings.Cut(rest, "# Changes that a person may")
		if !ok || !end {
			t.Fatal("the plugins stand elsewhere")
		}
		if s.only != nil {
			var kept strings.Builder
			for table := range strings.SplitSeq("\n"+plugins, "\n[") {
				if name := strings.TrimLeft(table, "["); slices.ContainsFunc(s.only, func(p string) bool {
					return strings.HasPrefix(name, "plugins."+p+"]") || strings.HasPrefix(name, "plugins."+p+".")
				}) {
					kept.WriteString("\n[" + table)
				}
			}
			plugins = kept.String()
		}
		c = before + "#" + plugins + "\n# Changes that a person may" + after
		if s.config != nil {
			c = s.config(c)
		}
		return c
	}
}

// swap is a handler that a test exchanges while its clients live.
type swap struct{ current atomic.Pointer[http.Handler] }

func (s *swap) set(h http.Handler) { s.current.Store(&h) }

func (s *swap) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*s.current.Load()).ServeHTTP(w, r) }

// world is a running host and its neighbours.
type world struct {
	host *host.Host
	url  string
	addr string
	log  *logtest.Buffer
	desk *httptest.Server

	stop func() // stops the host; called once at the end of the test if not before
}

// newDesk is the support desk with its tickets as shipped, in memory.
func newDesk(t testing.TB) *tickets.Server {
	t.Helper()
	desk, err := tickets.New(tickets.Options{Key: mcpKey})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(desk.Close)
	return desk
}

// neighbours starts the MCP server and the model, and returns the environment
// that points a host at them.
func neighbours(t testing.TB, s setup) (env map[string]string, desk *httptest.Server) {
	t.Helper()
	if s.desk == nil {
		s.desk = newDesk(t)
	}
	if s.model == nil {
		s.model = scripted.New(scripted.Options{GuardTemplate: guardTemplate(t)})
	}
	desk, model := httptest.NewServer(s.desk), httptest.NewServer(s.model)
	t.Cleanup(desk.Close)
	t.Cleanup(model.Close)
	env = map[string]string{
		"NAT_GATEWAY_API_KEY": serviceKey, "MCP_API_KEY": mcpKey, "LLM_API_KEY": modelKey,
		"TICKETS_MCP_URL": desk.URL + "/mcp", "LLM_BASE_URL": model.URL + "/v1",
		"LLM_MODEL": "scripted", "LLM_GUARD_MODEL": "scripted-guard", "AGENT_BIND_ADDRESS": "127.0.0.1:0",
	}
	maps.Copy(env, s.env)
	return env, desk
}

func guardTemplate(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(plugintest.Root(t), "prompts", "self_check_input.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// start brings a world up in this process.
func start(t testing.TB, s setup) *world {
	t.Helper()
	w := &world{log: &logtest.Buffer{}}
	path := deployment(t, s.edit(t), s.modules)
	env, desk := neighbours(t, s)
	w.desk = desk
	h, err := host.Start(t.Context(), host.Options{ConfigPath: path,
		Env:    func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	w.host, w.addr, w.url = h, h.Addr().String(), "http://"+h.Addr().String()
	w.stop = sync.OnceFunc(func() {
		if err := h.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
		client.CloseIdleConnections()
	})
	t.Cleanup(w.stop)
	return w
}

// common is the world of all tests that want the shipped configuration: its
// neighbours are exchanged and the host stays. Tests that use it do not run in
// parallel.
var common struct {
	world       *world
	model, desk *swap
	close       []func()
}

// shared returns the common world with these neighbours; nil is the usual one.
func shared(t testing.TB, model, desk http.Handler) *world {
	t.Helper()
	if desk == nil {
		desk = newDesk(t)
	}
	if model == nil {
		model = scripted.New(scripted.Options{GuardTemplate: guardTemplate(t)})
	}
	if common.world == nil {
		common.model, common.desk = &swap{}, &swap{}
		common.model.set(model)
		common.desk.set(desk)
		forever := &keeper{TB: t}
		common.world = start(forever, setup{model: common.model, desk: common.desk})
		common.close = forever.cleanups
	}
	common.model.set(model)
	common.desk.set(desk)
	return common.world
}

// keeper is a test that ends when all have ended.
type keeper struct {
	testing.TB
	cleanups []func()
}

func (k *keeper) Cleanup(f func())         { k.cleanups = append(k.cleanups, f) }
func (k *keeper) Context() context.Context { return context.Background() }

func (k *keeper) TempDir() string {
	dir, err := os.MkdirTemp("", "weir-e2e")
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// stopCommon stops the common world.
func stopCommon() {
	for _, f := range slices.Backward(common.close) {
		f()
	}
}

// bin is the product's binary, built once.
var bin struct {
	once sync.Once
	dir  string
	err  error
}

func binary(t testing.TB) string {
	t.Helper()
	bin.once.Do(func() {
		if bin.dir, bin.err = os.MkdirTemp("", "weir-e2e"); bin.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-o", filepath.Join(bin.dir, "weir"), "./cmd/weir")
		cmd.Dir = plugintest.Root(t)
		if text, err := cmd.CombinedOutput(); err != nil {
			bin.err = errors.New(string(text))
		}
	})
	if bin.err != nil {
		t.Fatal(bin.err)
	}
	return filepath.Join(bin.dir, "weir")
}

// child is the binary at work.
type child struct {
	cmd    *exec.Cmd
	stdout *logtest.Buffer
	stderr *logtest.Buffer
	ended  chan struct{}
	code   int
}

// launch starts the binary with exactly this environment.
func launch(t testing.TB, env map[string]string, stdin io.Reader, args ...string) *child {
	t.Helper()
	return spawn(t, exec.Command(binary(t), args...), env, stdin)
}

// spawn starts a program with exactly this environment.
func spawn(t testing.TB, cmd *exec.Cmd, env map[string]string, stdin io.Reader) *child {
	t.Helper()
	c := &child{cmd: cmd, stdout: &logtest.Buffer{}, stderr: &logtest.Buffer{}, ended: make(chan struct{})}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = stdin, c.stdout, c.stderr
	c.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	for name, value := range env {
		c.cmd.Env = append(c.cmd.Env, name+"="+value)
	}
	c.cmd.Dir = t.TempDir()
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait() // the code says it
		c.code = c.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // it may have ended
		<-c.ended
	})
	return c
}

// wait returns the exit code, or fails the test when it takes too long.
func (c *child) wait(t testing.TB, limit time.Duration) int {
	t.Helper()
	select {
	case <-c.ended:
	case <-time.After(limit):
		t.Fatalf("the process has not ended after %s:\n%s", limit, c.stderr)
	}
	return c.code
}

// address waits until the binary listens.
func (c *child) address(t testing.TB) string {
	t.Helper()
	var addr string
	eventually(t, func() bool { // a cold cache compiles
		select {
		case <-c.ended:
			t.Fatalf("it ended with %d:\n%s", c.code, c.stderr)
		default:
		}
		_, rest, ok := strings.Cut(c.stderr.String(), "msg=listening address=")
		addr, _, _ = strings.Cut(rest, "\n")
		return ok && addr != ""
	})
	return addr
}

// hang is when a test gives up waiting: no promise, but far above what a busy
// machine takes.
const hang = time.Minute

func eventually(t testing.TB, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(hang); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it did not happen within %s", hang)
		}
	}
}
