// Package registry tells the platform's agent gateway where this agent is, so
// that the gateway reads the manifest there (section 5 of the platform's
// specification).
//
//	Start ─ delay ─ POST {"endpoint": …} ─ 2xx ─► registered
//	                  ▲        │ anything else
//	                  └ interval ┘ … attempts used up ─► one line at ERROR
//
// It works in the background and has no say in anything else: an agent whose
// gateway is away serves like any other. Only another start registers again.
package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"weir/abi/strictjson"
	"weir/host/fault"
)

// Path is where a gateway takes registrations, below its base URL.
const Path = "/agents/register-url"

// MinAttempts is the least number of attempts that the specification asks for.
const MinAttempts = 3

// maxReply bounds what is read of a reply, so that its connection can be used
// again; nothing in it counts.
const maxReply = 64 << 10

// Options are a registration's settings. Zero durations and numbers mean the
// default.
type Options struct {
	// URL is the gateway's base URL. Empty: nobody is told, which is no error.
	URL string
	// Endpoint is the URL at which the gateway finds this agent. Required where
	// URL is set.
	Endpoint string
	// Delay is the time before the first attempt, 2 s by default.
	Delay time.Duration
	// Interval is the time between the end of an attempt and the next, 5 s by
	// default.
	Interval time.Duration
	// Attempts is how often it is tried, 10 by default and at least
	// MinAttempts. A gateway reads the manifest through the agent's service,
	// which has no endpoint before the first readiness probe: three attempts
	// are over by then.
	Attempts int
	// Timeout bounds one attempt, 10 s by default. The gateway may read the
	// manifest before it answers, so too short fails against a busy one.
	Timeout time.Duration
	// Logger receives the outcome; nil discards it.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{{&o.Delay, 2 * time.Second}, {&o.Interval, 5 * time.Second}, {&o.Timeout, 10 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if o.Attempts == 0 {
		o.Attempts = 10
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o Options) validate() error {
	switch {
	case !address(o.URL):
		return fault.New(fault.Invalid, "registry: URL: expected an http or https URL with a host, without user, password, query or fragment")
	case !address(o.Endpoint):
		return fault.New(fault.Invalid, "registry: endpoint: expected an http or https URL with a host, without user, password, query or fragment")
	case o.Delay < 0 || o.Interval < 0 || o.Timeout < 0:
		return fault.New(fault.Invalid, "registry: times: expected positive durations")
	case o.Attempts < MinAttempts:
		return fault.New(fault.Invalid, "registry: attempts: expected at least %d, got %d", MinAttempts, o.Attempts)
	}
	return nil
}

// address tells whether a URL may be printed and may have a path joined to it.
func address(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && !u.ForceQuery && u.Fragment == ""
}

// Registration is one start's attempts to register.
type Registration struct {
	opts   Options
	target string
	body   []byte
	client *http.Client

	cancel context.CancelCauseFunc
	done   chan struct{} // closed when nothing is tried any more
}

var errStopping = errors.New("the host is stopping")

// Start begins to register in the background and returns at once. Whatever the
// endpoint names must be able to answer by then. An error is of kind Invalid
// and says which option is wrong. The registration is ended by Stop.
func Start(opts Options) (*Registration, error) {
	opts = opts.withDefaults()
	if strings.TrimSpace(opts.URL) == "" {
		opts.Logger.Info("not registered with an agent gateway: no address of one is set")
		r := &Registration{cancel: func(error) {}, done: make(chan struct{})}
		close(r.done)
		return r, nil
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	return start(opts, newTransport()), nil
}

func start(opts Options, transport http.RoundTripper) *Registration {
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &Registration{opts: opts, cancel: cancel, done: make(chan struct{}),
		target: strings.TrimRight(opts.URL, "/") + Path,
		body:   append(strictjson.AppendString([]byte(`{"endpoint":`), opts.Endpoint), '}'),
		client: &http.Client{Timeout: opts.Timeout, Transport: transport,
			// Whoever answers for the gateway's address must be the gateway.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	go r.run(ctx)
	return r
}

// newTransport takes no proxy from the environment: the gateway is a neighbour
// in the cluster. It keeps no connection, because one registration is all.
func newTransport() *http.Transport {
	return &http.Transport{DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: 16 << 10, TLSHandshakeTimeout: 5 * time.Second}
}

// Stop gives up what is still being tried and waits for its end, at most until
// ctx ends. It may be called twice.
func (r *Registration) Stop(ctx context.Context) error {
	r.cancel(errStopping)
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Internal, "registry: stop: %w", context.Cause(ctx))
	}
}

func (r *Registration) run(ctx context.Context) {
	defer close(r.done)
	log := r.opts.Logger.With("gateway", r.opts.URL, "endpoint", r.opts.Endpoint)
	wait := r.opts.Delay
	for attempt := 1; ; attempt++ {
		if !sleep(ctx, wait) {
			return
		}
		err := r.register(ctx)
		switch {
		case err == nil:
			log.Info("registered with the agent gateway", "attempt", attempt)
			return
		case ctx.Err() != nil:
			return
		case attempt == r.opts.Attempts:
			log.Error("not registered with the agent gateway; the agent serves all the same, and only a restart tries again",
				"attempts", attempt, "error", err)
			return
		}
		log.Warn("the agent gateway did not take the registration; it is tried again", "attempt", attempt, "error", err)
		wait = r.opts.Interval
	}
}

// sleep reports whether the time passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// register makes one attempt. What the gateway answers is never quoted.
func (r *Registration) register(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.target, bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "weir")
	resp, err := r.client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok { // it repeats the address
			err = u.Err
		}
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxReply) // the status has said it all
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return fmt.Errorf("expected status 2xx, got %d: redirects are not followed", resp.StatusCode)
	case resp.StatusCode < 200 || resp.StatusCode >= 300:
		return fmt.Errorf("expected status 2xx, got %d", resp.StatusCode)
	}
	return nil
}
