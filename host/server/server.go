// Package server owns the listener: it reads HTTP strictly, lets the public
// paths through, authenticates everything else before it is routed, and gives
// routed requests to the wire contracts.
//
//	accept ─ conn (scan head, stall limit) ─ serve (refuse, recover)
//	       ─ gate (public │ authenticate) ─ exact route ─ contract
//
// It sends no text that a library made, since such texts quote the request.
package server

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"weir/host/fault"
	"weir/host/telemetry"
)

// Server is one HTTP listener. Start it once.
type Server struct {
	opts   Options
	app    *fiber.App
	route  fasthttp.RequestHandler // Fiber's own handler
	public map[string]fiber.Handler

	ln     *listener
	served chan struct{} // closed when no connection is accepted any more

	stop    sync.Once
	stopped chan struct{}
}

// Route is one method and path of a contract.
type Route struct {
	Method string
	// Path is compared byte for byte; a part that begins with ':' is a parameter.
	Path string
	// Handle answers an authenticated request. caller is what
	// [Options.Authenticate] returned, and nil on a public route.
	Handle func(c *fiber.Ctx, caller any) error
	// Traced says that a request with a 2xx answer has a span of its own: its
	// run's.
	Traced bool
}

// Header is the part of a request's head that authentication reads.
type Header interface {
	// Values returns every value of a name, in order; the strings are copies.
	Values(name string) []string
	// Del removes every value of a name.
	Del(name string)
}

// Options are a server's settings. Zero durations and sizes mean the default.
type Options struct {
	// Listen is the address, host:port. Port 0 takes a free one.
	Listen string
	// Public are the routes that need no key. They are answered to GET and HEAD
	// only, and their paths have no parameters.
	Public []Route
	// Routes are all routes behind authentication.
	Routes []Route
	// Authenticate decides who is asking. Its error's text is sent as it is, so
	// it must be fixed; kinds Unauthenticated and Invalid are expected, and
	// code "key" adds the challenge. It is called twice, the first time to know
	// whose body is about to be read, and must depend on the head alone. Required.
	Authenticate func(Header) (any, error)
	// Interrupt is called once when the drain time is over; it must end every
	// open stream. Nil does nothing.
	Interrupt func()
	// BodyLimit is the largest request body, 2 MiB by default; more is 413.
	BodyLimit int
	// HeadLimit is the largest request head, 16 KiB by default; more is 431.
	HeadLimit int
	// HeadTimeout is the time for a whole request head, 10 s by default.
	HeadTimeout time.Duration
	// BodyTimeout is the time for a whole request body after its head, 30 s by
	// default. Too short cuts slow uplinks.
	BodyTimeout time.Duration
	// IdleTimeout closes connections that ask nothing, after 120 s by default.
	// Shorter than a proxy's own limit, and the proxy meets closed connections.
	IdleTimeout time.Duration
	// Stall is how long one write may wait for a client that does not read,
	// 30 s by default. It never bounds a whole response.
	Stall time.Duration
	// Drain is how long Stop lets open requests go on, 25 s by default.
	Drain time.Duration
	// Grace is how long Stop waits after the interrupt before it closes what is
	// left, 2 s by default.
	Grace time.Duration
	// Tracer times requests and makes their spans; nil does neither.
	Tracer *telemetry.Tracer
	// Logger receives what went wrong, never text of a request.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&o.HeadTimeout, 10 * time.Second}, {&o.BodyTimeout, 30 * time.Second},
		{&o.IdleTimeout, 120 * time.Second}, {&o.Stall, 30 * time.Second},
		{&o.Drain, 25 * time.Second}, {&o.Grace, 2 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if o.BodyLimit == 0 {
		o.BodyLimit = 2 << 20
	}
	if o.HeadLimit == 0 {
		o.HeadLimit = 16 << 10
	}
	if o.Interrupt == nil {
		o.Interrupt = func() {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o Options) validate() error {
	if o.Authenticate == nil {
		return fault.New(fault.Internal, "server: no authentication")
	}
	if o.HeadTimeout < 0 || o.BodyTimeout < 0 || o.IdleTimeout < 0 || o.Stall < 0 || o.Drain < 0 || o.Grace < 0 {
		return fault.New(fault.Invalid, "server: time-outs: expected positive durations")
	}
	if o.BodyLimit < 0 || o.HeadLimit < 0 {
		return fault.New(fault.Invalid, "server: limits: expected positive sizes")
	}
	return nil
}

// New returns a server that does not listen yet.
func New(opts Options) (*Server, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	s := &Server{opts: opts, served: make(chan struct{}), stopped: make(chan struct{})}
	s.public = s.publicPaths()
	s.app = s.newApp()
	s.route = s.app.Handler()
	s.app.Server().Handler = s.serve
	return s, nil
}

// newApp sets Fiber up. No WriteTimeout: fasthttp's covers a whole response
// and would cut a stream; conn bounds each write instead.
func (s *Server) newApp() *fiber.App {
	app := fiber.New(fiber.Config{
		CaseSensitive: true, StrictRouting: true, UnescapePath: false,
		BodyLimit: s.opts.BodyLimit, ReadBufferSize: s.opts.HeadLimit,
		ReadTimeout: s.opts.HeadTimeout, IdleTimeout: s.opts.IdleTimeout,
		ErrorHandler:                 s.answerError,
		DisablePreParseMultipartForm: true,
		// An open stream, which may wait for a person for minutes, then has no
		// buffers: 20 KiB less each.
		ReduceMemoryUsage:     true,
		DisableStartupMessage: true,
	})
	app.Server().SecureErrorLogMessage = true
	app.Server().HeaderReceived = s.expect
	app.Use(s.gate)
	for _, r := range s.opts.Routes {
		handle := func(c *fiber.Ctx) error {
			if x, ok := c.Context().UserValue(exchangeKey{}).(*exchange); ok {
				x.route, x.traced = r.Path, r.Traced
			}
			return r.Handle(c, c.Locals(callerKey{}))
		}
		if r.Method == fiber.MethodGet {
			app.Get(r.Path, handle) // answers HEAD as well
		} else {
			app.Add(r.Method, r.Path, handle)
		}
	}
	return app
}

// Start listens and returns the bound address; requests are served from then
// on. An error is of kind Unavailable.
func (s *Server) Start() (net.Addr, error) {
	ln, err := net.Listen("tcp", s.opts.Listen)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "server: listen: %w", err)
	}
	s.ln = newListener(ln, s.opts.Stall, s.opts.HeadLimit)
	go func() {
		defer close(s.served)
		if err := s.app.Server().Serve(s.ln); err != nil {
			s.opts.Logger.Error("the listener failed", "error", err)
		}
	}()
	return ln.Addr(), nil
}

// Stop closes the listener, lets open requests go on for the drain time,
// interrupts streams, and closes what is left after the grace time or when ctx
// ends. It returns when no connection is open. It may be called twice and by
// several goroutines; all wait.
func (s *Server) Stop(ctx context.Context) {
	if s.ln == nil {
		return
	}
	s.stop.Do(func() {
		defer close(s.stopped)
		s.drain(ctx)
	})
	<-s.stopped
}

func (s *Server) drain(ctx context.Context) {
	_ = s.ln.Close() // before Shutdown, which forgets a listener not served yet
	<-s.served
	s.ln.closeConns(false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.app.Server().ShutdownWithContext(context.Background())
	}()
	if !waitFor(ctx, done, s.opts.Drain) {
		s.opts.Interrupt()
		if !waitFor(ctx, done, s.opts.Grace) {
			s.ln.closeConns(true)
		}
	}
	<-done
}

// waitFor reports whether done was closed in time.
func waitFor(ctx context.Context, done <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
