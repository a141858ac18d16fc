package host

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"

	"weir/host/admin"
	"weir/host/approval"
	"weir/host/auth"
	"weir/host/config"
	"weir/host/contract/stream"
	"weir/host/contract/turn"
	"weir/host/fault"
	"weir/host/model"
	"weir/host/plugin"
	"weir/host/run"
	"weir/host/server"
	"weir/host/store"
	"weir/host/telemetry"
	"weir/host/telemetry/export"
	"weir/host/tool"
	"weir/host/watch"
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
	// Reached is told of each point at which a run becomes durable, for tests
	// that end the process there; nil: nobody is.
	Reached func(record string)
	// Hangup asks for a reload each time that something arrives; nil: nobody.
	Hangup <-chan os.Signal
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
	h.listen(ctx, opts.Hangup)
	h.log.Info("draining", "open_streams", h.stream.Open())
	return h.Stop(context.WithoutCancel(ctx))
}

// listen asks for reloads until ctx ends.
func (h *Host) listen(ctx context.Context, hangup <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			h.swaps.ask(reload, TriggerSignal)
		}
	}
}

// Host is a running agent host.
type Host struct {
	log    *slog.Logger // what it gets may leave the machine
	stderr *slog.Logger // what it gets stays
	tracer *telemetry.Tracer
	cfg    *config.Config // as it was started
	source config.Source
	addr   net.Addr

	runtime  *plugin.Runtime
	models   *model.Client
	tools    *tool.Client
	store    store.Store
	swaps    *swaps
	archive  *archive
	keeper   *run.Keeper
	executor *approval.Executor // nil where nothing can be authorised
	reached  func(string)
	stream   *stream.Handler
	turn     *turn.Handler // nil where nobody asks by that contract
	turnAddr net.Addr      // of its listener without a key; nil: there is none
	server   *server.Server
	watcher  *watch.Watcher // nil where files are not watched
	admin    *admin.Server  // nil without a key
	alone    *TurnOptions   // not nil: it serves the turn contract alone

	draining atomic.Bool
	stop     []func(context.Context) error // in the order of starting
}

// Start brings everything up in order: what can be refused without a network
// first, the listener last. When it fails, everything that was started is
// stopped again.
func Start(ctx context.Context, opts Options) (*Host, error) {
	h := &Host{log: opts.Logger, reached: opts.Reached}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.stderr = h.log
	if err := h.start(ctx, opts); err != nil {
		return nil, errors.Join(err, h.Stop(context.WithoutCancel(ctx)))
	}
	return h, nil
}

func (h *Host) start(ctx context.Context, opts Options) error {
	d, err := h.read(opts)
	if err != nil {
		return err
	}
	if err := h.startTelemetry(ctx); err != nil {
		return err
	}
	p, err := h.startPlugins(ctx, d)
	if err != nil {
		return err
	}
	if err := h.startModel(); err != nil {
		return err
	}
	if err := h.startTools(ctx); err != nil {
		return err
	}
	if err := h.startStore(ctx); err != nil {
		return err
	}
	if err := h.startPolicy(ctx, p); err != nil {
		return err
	}
	if err := h.startServer(); err != nil {
		return err
	}
	if err := h.startRegistry(); err != nil {
		return err
	}
	return h.startTriggers()
}

// read reads the configuration and the files that it names.
func (h *Host) read(opts Options) (*draft, error) {
	h.source = config.Source{Path: opts.ConfigPath, Env: opts.Env, Keyless: h.alone != nil}
	cfg, err := config.Load(h.source)
	if err != nil {
		return nil, err
	}
	h.cfg, h.source.Path = cfg, cfg.Path
	if h.alone != nil || turns(cfg) {
		if err := checkTurn(cfg); err != nil {
			return nil, err
		}
	}
	d, err := newDraft(cfg)
	if err != nil {
		return nil, err
	}
	for _, note := range d.notes {
		h.log.Warn(note)
	}
	return d, nil
}

// Addr is the address that the host listens on.
func (h *Host) Addr() net.Addr { return h.addr }

// Stop drains the listener and stops everything in reverse order. It is called
// once.
func (h *Host) Stop(ctx context.Context) error {
	h.draining.Store(true)
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
		ServiceName: h.cfg.Agent.Name, Version: h.cfg.Agent.Version, AgentType: h.cfg.Agent.Type,
		Runtime: stream.Runtime, Logger: h.stderr})
	if err != nil {
		return err
	}
	h.onStop(exporter.Shutdown)
	h.log = slog.New(exporter.Handler(h.log.Handler()))
	h.tracer = telemetry.New(exporter.TracerProvider(), telemetry.Options{
		Metrics: exporter.MeterProvider(), LatestGenAI: export.LatestGenAI(),
		Runtime: stream.Runtime, Agent: h.cfg.Agent.Name, AgentType: h.cfg.Agent.Type, Version: h.cfg.Agent.Version,
		Routes: map[string]telemetry.Route{stream.Name: {Method: "POST", Path: stream.PathWorkflow},
			turn.Name: {Method: "POST", Path: turn.PathTask}},
		CaptureContent: t.CaptureContent, ContentMaxChars: t.ContentMaxChars,
		CaptureGuardContent: t.GuardContent, GuardMaxChars: t.GuardMaxChars,
		CapturePseudonym: t.UserID,
	})
	h.tracer.Losses(exporter.Losses)
	return nil
}

func (h *Host) startPlugins(ctx context.Context, d *draft) (*policy, error) {
	runtime, err := plugin.NewRuntime(ctx, plugin.RuntimeOptions{CacheDir: h.cfg.Plugins.Cache,
		TotalMemory: int64(h.cfg.Plugins.TotalMemory),
		Logger:      h.log, Printed: h.stderr, Failed: h.tracer.PluginFailed})
	if err != nil {
		return nil, err
	}
	h.runtime = runtime
	h.onStop(runtime.Close)
	p, err := load(ctx, runtime, d, nil)
	if err != nil {
		return nil, err
	}
	h.onStop(func(ctx context.Context) error {
		if h.swaps != nil {
			return h.swaps.free(ctx)
		}
		return p.close(ctx)
	})
	h.log.Info("policy loaded", "generation", p.generation.Short(), "plugins", len(p.generation.Plugins()), "variants", len(p.variants))
	return p, nil
}

// startPolicy makes the first policy current and takes up the runs that wait.
func (h *Host) startPolicy(ctx context.Context, p *policy) error {
	h.archive = newArchive(h)
	if err := h.newKeeper(); err != nil {
		return err
	}
	if err := h.equip(ctx, p, nil); err != nil {
		return err
	}
	for _, note := range p.unpinned {
		h.log.Warn(note)
	}
	h.swaps = newSwaps(h, p)
	return h.startKeeper(ctx, p)
}

func (h *Host) startModel() error {
	m := h.cfg.Model
	client, err := model.New(model.Options{Agent: alias(m.Agent), Guard: alias(m.Guard),
		Connect: m.ConnectTimeout, FirstToken: m.FirstTokenTimeout, BetweenChunks: m.ChunkTimeout, Tracer: h.tracer})
	if err != nil {
		return fault.New(fault.Invalid, "[model] %w", err)
	}
	h.models = client
	h.onStop(func(context.Context) error { client.Close(); return nil })
	return nil
}

func alias(m config.Model) model.Alias {
	return model.Alias{BaseURL: m.BaseURL, APIKey: m.APIKey.Reveal(), Name: m.Name,
		ReasoningEffort: m.ReasoningEffort, Temperature: &m.Temperature, MaxTokens: m.MaxTokens,
	}
}

func (h *Host) startTools(ctx context.Context) error {
	opts := toolOptions(h.cfg)
	opts.Changed, opts.Tracer = h.toolsChanged, h.tracer
	client, err := tool.Connect(ctx, opts)
	if err != nil {
		return err
	}
	h.tools = client
	h.onStop(func(context.Context) error { return client.Close() })
	return nil
}

func toolOptions(cfg *config.Config) tool.Options {
	m := cfg.Tools.MCP
	return tool.Options{URL: m.URL, Key: m.APIKey.Reveal(), FunctionGroup: m.FunctionGroup,
		Include: m.Include, Overrides: overrides(m), CallTimeout: m.CallTimeout,
		Attempts: m.ConnectAttempts, RetryDelay: m.ConnectInterval, Version: cfg.Agent.Version}
}

// toolsChanged hears that the server describes tools differently than when
// they were admitted. Calls of them are refused; the service stays ready,
// because every replica sees the same server and the other tools still work.
func (h *Host) toolsChanged(changes []tool.Change) {
	for _, c := range changes {
		h.log.Error("a tool has changed at the MCP server; its calls are refused until it is approved",
			"tool", c.Name, "admitted", c.Admitted, "offered", c.Offered)
	}
}

func (h *Host) startServer() error {
	gate, err := auth.New(h.cfg.Server.APIKey.Reveal())
	if err != nil {
		return err
	}
	h.stream, err = stream.New(contract{h.keeper, h.tracer}, stream.Options{
		Workflow: h.cfg.Agent.Name + ".invoke", MaxRuns: h.cfg.Server.MaxRuns, MaxPerUser: h.cfg.Run.MaxPerUser,
		KeepAlive: h.cfg.Server.KeepAlive, Version: h.version, Logger: h.log,
	})
	if err != nil {
		return err
	}
	h.tracer.OpenStreams(h.stream.Open)
	if err := h.startTurn(); err != nil {
		return err
	}
	h.server, err = server.New(server.Options{
		Listen: h.cfg.Server.Listen, Public: h.publicRoutes(),
		Authenticate: func(header server.Header) (any, error) { return request(gate, header) },
		Routes:       h.routes(),
		Interrupt:    h.interrupt,
		Stall:        h.cfg.Server.Stall, Drain: h.cfg.Server.Drain, Tracer: h.tracer, Logger: h.log,
	})
	if err != nil {
		return err
	}
	if h.addr, err = h.server.Start(); err != nil {
		return err
	}
	h.onStop(func(ctx context.Context) error { h.server.Stop(ctx); return nil })
	h.onStop(h.quiesce)
	return nil
}

// routes are what callers with a key may ask. Without approvals there is
// nothing to answer.
func (h *Host) routes() []server.Route {
	routes := []server.Route{
		{Method: "POST", Path: stream.PathWorkflow, Handle: h.stream.Workflow, Traced: true},
		{Method: "GET", Path: stream.PathVersion, Handle: h.stream.Version},
		{Method: "GET", Path: stream.PathEvents, Handle: h.stream.Events},
	}
	if h.executor != nil {
		routes = append(routes, server.Route{Method: "POST", Path: stream.PathResponse, Handle: h.stream.Response})
	}
	if h.cfg.Contract.Turn.Enabled {
		routes = append(routes, server.Route{Method: "POST", Path: turn.PathTask, Handle: h.turn.Execute, Traced: true})
	}
	return routes
}

// interrupt ends what is at work when the drain time is over.
func (h *Host) interrupt() {
	h.stream.Drain()
	if h.turn != nil {
		h.turn.Drain()
	}
}

// quiesce refuses new runs, lets the waiting ones wait without their streams,
// and gives the others their time while /health/ready says that it does.
func (h *Host) quiesce(ctx context.Context) error {
	h.stream.Refuse()
	if h.turn != nil {
		h.turn.Refuse()
	}
	h.keeper.Drain()
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Server.Drain)
	defer cancel()
	h.stream.Wait(ctx)
	if h.turn != nil {
		h.turn.Wait(ctx)
		h.turn.Drain()
	}
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

// version is the provenance of the current policy.
func (h *Host) version() stream.Version {
	p := h.swaps.current.Load()
	cfg := p.cfg
	v := stream.Version{
		Available: true, Framework: "wazero", FrameworkVersion: plugin.EngineVersion,
		MCPSDK: mcpSDK, MCPSDKVersion: moduleVersion("github.com/" + mcpSDK),
		AgentVersion: cfg.Agent.Version, BuildCommit: cfg.Build.Commit,
		Model: cfg.Model.Agent.Name, GuardModel: cfg.Model.Guard.Name,
		ReasoningEffort: cfg.Model.Agent.ReasoningEffort, GuardReasoningEffort: cfg.Model.Guard.ReasoningEffort,
		ConfigPath: cfg.Path, ConfigSHA256: cfg.SHA256,
		PromptSHA256: cfg.PromptSHA256(), GuardrailsPromptSHA256: cfg.GuardPromptsSHA256(),
		Generation: p.Generation(),
	}
	if h.turn != nil {
		v.ToolDNA = h.turn.ToolDNA()
	}
	for _, one := range p.variants {
		v.Variants = append(v.Variants, stream.Variant{Name: one.named, Share: one.variant.Share, Generation: one.id})
	}
	for _, t := range p.tools.list {
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
