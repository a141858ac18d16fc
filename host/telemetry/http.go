package telemetry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"weir/host/fault"
)

// other stands for whatever is not one of a known set, so that nobody outside
// can make new series.
const other = "_OTHER"

// Exchange is one HTTP request that was answered to its last byte.
type Exchange struct {
	Method      string
	Route       string // as it was declared; empty: none fits
	Status      int
	Began       time.Time
	Traceparent string // W3C; ignored when empty or malformed
	// Quiet makes no span: of a health check, or of an exchange that has one,
	// as a run's root span is.
	Quiet bool
}

// Served records an exchange that ends now: its duration, and a server span
// named "{method} {route}". Addresses, user agents, paths and queries are the
// client's own words and stay out.
func (t *Tracer) Served(x Exchange) {
	if t == nil {
		return
	}
	now := time.Now()
	method := method(x.Method)
	attrs := []attribute.KeyValue{
		attribute.String(AttrHTTPMethod, method),
		attribute.String(AttrURLScheme, "http"),
		attribute.String(AttrHTTPVersion, "1.1"),
		attribute.Int(AttrHTTPStatus, x.Status),
	}
	name := method
	if x.Route != "" {
		attrs = append(attrs, attribute.String(AttrHTTPRoute, x.Route))
		name += " " + x.Route
	}
	if x.Status >= http.StatusInternalServerError {
		attrs = append(attrs, attribute.String(AttrErrorType, strconv.Itoa(x.Status)))
	}
	record(t.metrics.serverTime, now.Sub(x.Began), with(attrs...))
	if x.Quiet {
		return
	}
	_, s := t.tracer.Start(t.join(context.Background(), x.Traceparent), name, trace.WithTimestamp(x.Began),
		trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attrs...))
	if x.Status >= http.StatusInternalServerError {
		s.SetStatus(codes.Error, "")
	}
	s.End(trace.WithTimestamp(now))
}

var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
	http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace, http.MethodPatch}

func method(m string) string {
	if slices.Contains(methods, m) {
		return m
	}
	return other
}

// Transport returns base with the trace of a request's context added to its
// head (W3C) and its duration recorded, up to the head of the answer. On nil
// it returns base.
func (t *Tracer) Transport(base http.RoundTripper) http.RoundTripper {
	if t == nil {
		return base
	}
	return &transport{t: t, base: base}
}

type transport struct {
	t    *Tracer
	base http.RoundTripper
	made sync.Map // outgoing to metric.MeasurementOption
}

// RoundTrip implements http.RoundTripper. The error is base's.
func (p *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if trace.SpanContextFromContext(req.Context()).IsValid() {
		req = req.Clone(req.Context())
		propagation.TraceContext{}.Inject(req.Context(), propagation.HeaderCarrier(req.Header))
	}
	began := time.Now()
	resp, err := p.base.RoundTrip(req)
	key := outgoing{method: method(req.Method), scheme: req.URL.Scheme, host: req.URL.Host}
	switch {
	case err != nil:
		key.failure = class(err)
	default:
		key.status = resp.StatusCode
		if resp.StatusCode >= http.StatusBadRequest {
			key.failure = strconv.Itoa(resp.StatusCode)
		}
	}
	record(p.t.metrics.clientTime, time.Since(began), p.series(key, req.URL))
	return resp, err
}

// outgoing is what the series of a request that the host makes depends on. The
// servers are the operator's, and no redirect is followed.
type outgoing struct {
	method, scheme, host, failure string
	status                        int // 0: no reply
}

// series returns the attributes of a request, made once for each: there are
// several in a run, with the same few servers.
func (p *transport) series(key outgoing, u *url.URL) metric.MeasurementOption {
	if s, ok := p.made.Load(key); ok {
		return s.(metric.MeasurementOption)
	}
	s := with(key.attributes(u)...)
	p.made.Store(key, s)
	return s
}

// attributes say who was asked, by the operator's own names of the model and of
// the tools' server, without path and query, and what came of it.
func (e outgoing) attributes(u *url.URL) []attribute.KeyValue {
	attrs := []attribute.KeyValue{
		attribute.String(AttrHTTPMethod, e.method),
		attribute.String(AttrServer, u.Hostname()),
	}
	if port, err := strconv.Atoi(port(u)); err == nil {
		attrs = append(attrs, attribute.Int(AttrServerPort, port))
	}
	if e.status != 0 {
		attrs = append(attrs, attribute.Int(AttrHTTPStatus, e.status))
	}
	if e.failure != "" {
		attrs = append(attrs, attribute.String(AttrErrorType, e.failure))
	}
	return attrs
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

// class is a failed request's error.type, of a closed set.
func class(err error) string {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case fault.CodeOf(err) != "":
		return code(fault.CodeOf(err))
	default:
		return "connection"
	}
}
