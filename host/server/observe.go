package server

import (
	"time"

	"github.com/valyala/fasthttp"

	"weir/host/telemetry"
)

// exchangeKey is where a request keeps its exchange.
type exchangeKey struct{}

// exchange is one request from its head to the last byte of its answer. The
// library closes it, as a value of the request, once the answer is written;
// that is how the end of a stream is known.
type exchange struct {
	tracer      *telemetry.Tracer
	method      string
	traceparent string
	began       time.Time
	status      int
	route       string // of the routes that are declared; empty: none
	traced      bool
	health      bool
}

// observe begins an exchange. What it returns is called when the handler has
// returned, with the answer made but not written.
func (s *Server) observe(ctx *fasthttp.RequestCtx) (answered func()) {
	if s.opts.Tracer == nil {
		return func() {}
	}
	x := &exchange{tracer: s.opts.Tracer, method: string(ctx.Method()), route: s.fixed(rawPath(ctx)), began: time.Now()}
	if values := ctx.Request.Header.PeekAll("traceparent"); len(values) == 1 {
		x.traceparent = string(values[0])
	}
	ctx.SetUserValue(exchangeKey{}, x)
	return func() { x.status = ctx.Response.StatusCode() }
}

// fixed returns the path if it is a declared one without parameters, whatever
// the answer will be.
func (s *Server) fixed(path string) string {
	for _, r := range s.opts.Routes {
		if r.Path == path {
			return r.Path
		}
	}
	return ""
}

// Close implements io.Closer.
func (x *exchange) Close() error {
	x.tracer.Served(telemetry.Exchange{
		Method: x.method, Route: x.route, Status: x.status, Began: x.began, Traceparent: x.traceparent,
		Quiet: x.health || x.traced && x.status < fasthttp.StatusMultipleChoices,
	})
	return nil
}
