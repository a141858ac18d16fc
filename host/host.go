package host

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"

	"weir/abi"
	"weir/host/auth"
	"weir/host/config"
	"weir/host/contract/stream"
	"weir/host/fault"
	"weir/host/model"
	"weir/host/plugin"
	"weir/host/run"
	"weir/host/server"
	"weir/host/store"
	"weir/host/store/memory"
	"weir/host/telemetry"
	"weir/host/telemetry/export"
	"weir/host/tool"
)

// Options are what a host is started with.
type Options struct {
	// ConfigPath is agent.toml; empty: AGENT_CONFIG_PATH, else the working
	// directory's.
	ConfigPath string
	// Env looks an environment variable up, like os.LookupEnv.
	Env func(string) (string, bool)
	// Logger receives the host's log; nil discards it.
	Logger *slog.Logger
	// Started is called once with the bound address; nil does nothing.
	Started func(net.Addr)
}

// Serve starts a host, serves until ctx ends, drains and stops everything. An
// error of kind fault.Invalid or fault.Unavailable before Started is a refusal
// to start whose text names the key and the reason.
func Serve(ctx context.Context, opts Options) error {
	h, err := Start(ctx, opts)
	if err != nil {
		return err
	}
	if opts.Started != nil {
		opts.Started(h.Addr())
	}
	<-ctx.Done()
	h.log.Info("draining", "open_streams", h.stream.Open())
	return h.Stop(context.WithoutCancel(ctx))
}

// Host is a running agent host.
type Host struct {
	log    *slog.Logger
	tracer *telemetry.Tracer
	cfg    *config.Config
	addr   net.Addr
	policy atomic.Pointer[policy]
	stream *stream.Handler
	server *server.Server
	stop   []func(context.Context) error // in the order of starting
}

// Start brings everything up in order: what can be refused without a network
// first, the listener last. When it fails, everything that was started is
// stopped again.
func Start(ctx context.Context, opts Options) (*Host, error) {
	h := &Host{log: opts.Logger}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if err := h.start(ctx, opts); err != nil {
		return nil, errors.Join(err, h.Stop(context.WithoutCancel(ctx)))
	}
	return h, nil
}

func (h *Host) start(ctx context.Context, opts Options) error {
	cfg, err := config.Load(config.Source{Path: opts.ConfigPath, Env: opts.Env})
	if err != nil {
		return err
	}
	h.cfg = cfg
	for _, w := range cfg.Warnings {
		h.log.Warn(w)
	}
	if err := h.startTelemetry(ctx); err != nil {
		return err
	}
	if err := h.startPolicy(ctx); err != nil {
		return err
	}
	models, err := h.startModel()
	if err != nil {
		return err
	}
	tools, err := h.startTools(ctx)
	if err != nil {
		return err
	}
	engine, err := run.New(run.Deps{Policy: h.take, Model: models, Tools: tools, Log: h.startStore()}, run.Options{
		Name: cfg.Agent.Name + ".invoke", MaxToolCalls: cfg.Agent.MaxToolCalls, Timeout: cfg.Agent.RequestTimeout,
		InputDecision: cfg.Guard.InputDecision, OutputDecision: cfg.Guard.OutputDecision,
		Tracer: h.tracer, Logger: h.log,
	})
	if err != nil {
		return err
	}
	return h.startServer(engine, tools)
}

// Addr is the address that the host listens on.
func (h *Host) Addr() net.Addr { return h.addr }

// Stop drains the listener and stops everything in reverse order. It is called
// once.
func (h *Host) Stop(ctx context.Context) error {
	var errs []error
	for i := len(h.stop) - 1; i >= 0; i-- {
		errs = append(errs, h.stop[i](ctx))
	}
	return errors.Join(errs...)
}

func (h *Host) onStop(f func(context.Context) error) { h.stop = append(h.stop, f) }

func (h *Host) startTelemetry(ctx context.Context) error {
	t := h.cfg.Telemetry
	exporter, err := export.Start(ctx, export.Options{
		ServiceName: h.cfg.Agent.Name, Version: h.cfg.Agent.Version, Runtime: stream.Runtime, Logger: h.log})
	if err != nil {
		return err
	}
	h.onStop(exporter.Shutdown)
	var provider trace.TracerProvider
	if exporter != nil {
		provider = exporter.TracerProvider()
	}
	h.tracer = telemetry.New(provider, telemetry.Options{
		Runtime: stream.Runtime, Agent: h.cfg.Agent.Name,
		CaptureContent: t.CaptureContent, ContentMaxChars: t.ContentMaxChars,
		CaptureGuardContent: t.GuardContent, GuardMaxChars: t.GuardMaxChars,
		CapturePseudonym: t.UserID,
	})
	return nil
}

func (h *Host) startPolicy(ctx context.Context) error {
	runtime, err := plugin.NewRuntime(ctx, plugin.RuntimeOptions{CacheDir: h.cfg.Plugins.Cache, Logger: h.log})
	if err != nil {
		return err
	}
	h.onStop(runtime.Close)
	p, err := build(ctx, runtime, h.cfg)
	if err != nil {
		return err
	}
	p.tracer, p.log = h.tracer, h.log
	h.policy.Store(p)
	h.onStop(p.generation.Close)
	h.onStop(p.chain.Close) // first, for what its monitors still do keeps the generation
	h.log.Info("policy loaded", "generation", p.generation.Short(), "plugins", len(p.generation.Plugins()))
	return nil
}

// take returns the current policy for one run.
func (h *Host) take() (run.Policy, func()) {
	for {
		p := h.policy.Load()
		if release := p.generation.Acquire(); release != nil {
			return p, release
		}
	}
}

func (h *Host) startModel() (models, error) {
	m := h.cfg.Model
	client, err := model.New(model.Options{Agent: alias(m.Agent), Guard: alias(m.Guard),
		Connect: m.ConnectTimeout, FirstToken: m.FirstTokenTimeout, BetweenChunks: m.ChunkTimeout})
	if err != nil {
		return models{}, fault.New(fault.Invalid, "[model] %w", err)
	}
	h.onStop(func(context.Context) error { client.Close(); return nil })
	return models{client: client, names: map[string]string{abi.ModelAgent: m.Agent.Name, abi.ModelGuard: m.Guard.Name}}, nil
}

func alias(m config.Model) model.Alias {
	return model.Alias{BaseURL: m.BaseURL, APIKey: m.APIKey.Reveal(), Name: m.Name,
		ReasoningEffort: m.ReasoningEffort, Temperature: &m.Temperature, MaxTokens: m.MaxTokens,
	}
}

func (h *Host) startTools(ctx context.Context) (tools, error) {
	m := h.cfg.Tools.MCP
	opts := tool.Options{URL: m.URL, Key: m.APIKey.Reveal(), FunctionGroup: m.FunctionGroup, Include: m.Include,
		CallTimeout: m.CallTimeout, Attempts: m.ConnectAttempts, RetryDelay: m.ConnectInterval, Version: h.cfg.Agent.Version,
		Overrides: map[string]tool.Override{}}
	for name, o := range m.Overrides {
		opts.Overrides[name] = tool.Override{Description: o.Description}
	}
	client, err := tool.Connect(ctx, opts)
	if err != nil {
		return tools{}, err
	}
	h.onStop(func(context.Context) error { return client.Close() })
	return newTools(client), nil
}

func (h *Host) startStore() store.Store {
	s := memory.New(memory.Options{KeepEnded: keepEnded(h.cfg.Store.KeepEnded)})
	h.onStop(func(context.Context) error { return s.Close() })
	return s
}

// keepEnded translates the configuration's 0, none, into the store's.
func keepEnded(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

func (h *Host) startServer(engine *run.Engine, tools tools) error {
	gate, err := auth.New(h.cfg.Server.APIKey.Reveal())
	if err != nil {
		return err
	}
	h.stream, err = stream.New(engine, stream.Options{
		Workflow: h.cfg.Agent.Name + ".invoke", MaxHistory: h.cfg.Agent.MaxHistory,
		KeepAlive: h.cfg.Server.KeepAlive, Version: func() stream.Version { return h.version(tools) }, Logger: h.log,
	})
	if err != nil {
		return err
	}
	h.server, err = server.New(server.Options{
		Listen: h.cfg.Server.Listen, Title: h.cfg.Agent.Title, Version: h.cfg.Agent.Version,
		Authenticate: func(header server.Header) (any, error) { return request(gate, header) },
		Routes: []server.Route{
			{Method: "POST", Path: stream.PathWorkflow, Handle: h.stream.Workflow},
			{Method: "GET", Path: stream.PathVersion, Handle: h.stream.Version},
		},
		Ready: func() []string { return reasons(tools.client.Ready()) }, Interrupt: h.stream.Drain,
		Stall: h.cfg.Server.Stall, Drain: h.cfg.Server.Drain, Logger: h.log,
	})
	if err != nil {
		return err
	}
	if h.addr, err = h.server.Start(); err != nil {
		return err
	}
	h.onStop(func(ctx context.Context) error { h.server.Stop(ctx); return nil })
	return nil
}

// request begins a run's request with who is asking.
func request(gate *auth.Authenticator, header auth.Header) (any, error) {
	caller, err := gate.Authenticate(header)
	if err != nil {
		return nil, err
	}
	source := run.SourceGateway
	if caller.Generated() {
		source = run.SourceGenerated
	}
	return run.Request{
		Principal: run.Principal{UserID: caller.UserID(), Username: caller.Username(),
			Roles: caller.Roles(), Pseudonym: caller.Pseudonym()},
		RequestID: caller.RequestID(), RequestIDSource: source,
	}, nil
}

func reasons(err error) []string {
	if err == nil {
		return nil
	}
	return []string{err.Error()}
}

func (h *Host) version(tools tools) stream.Version {
	v := stream.Version{
		Available: true, Framework: "wazero", FrameworkVersion: plugin.EngineVersion,
		MCPSDK: mcpSDK, MCPSDKVersion: moduleVersion("github.com/" + mcpSDK),
		AgentVersion: h.cfg.Agent.Version, BuildCommit: h.cfg.Build.Commit,
		Model: h.cfg.Model.Agent.Name, GuardModel: h.cfg.Model.Guard.Name,
		ReasoningEffort: h.cfg.Model.Agent.ReasoningEffort, GuardReasoningEffort: h.cfg.Model.Guard.ReasoningEffort,
		ConfigPath: h.cfg.Path, ConfigSHA256: h.cfg.SHA256,
		PromptSHA256: h.cfg.PromptSHA256(), GuardrailsPromptSHA256: h.cfg.GuardPromptsSHA256(),
		Generation: h.policy.Load().Generation(),
	}
	for _, t := range tools.list {
		v.ToolsExposed = append(v.ToolsExposed, t.Name)
	}
	return v
}

// mcpSDK is the SDK that package tool is built on.
const mcpSDK = "modelcontextprotocol/go-sdk"

// moduleVersion is the version of a module that the binary was built with.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return ""
}
