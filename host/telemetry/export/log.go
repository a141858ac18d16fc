package export

import (
	"context"
	"errors"
	"log/slog"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/log"

	"weir/host/fault"
	"weir/host/telemetry"
)

// bridge writes every record twice: with next, and to the log provider. What
// next would not write is not exported either.
type bridge struct {
	next slog.Handler
	otel slog.Handler
}

// newBridge attaches the provider to next, once.
func newBridge(next slog.Handler, provider log.LoggerProvider) slog.Handler {
	if b, already := next.(*bridge); already {
		return b
	}
	return &bridge{next: telemetry.Correlated(next),
		otel: otelslog.NewHandler(telemetry.ScopeName, otelslog.WithLoggerProvider(provider))}
}

// Enabled implements slog.Handler.
func (b *bridge) Enabled(ctx context.Context, level slog.Level) bool {
	return b.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (b *bridge) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(admit(nil, a)...)
		return true
	})
	return errors.Join(b.next.Handle(ctx, r), b.otel.Handle(ctx, out))
}

// WithAttrs implements slog.Handler.
func (b *bridge) WithAttrs(attrs []slog.Attr) slog.Handler {
	var out []slog.Attr
	for _, a := range attrs {
		out = admit(out, a)
	}
	return &bridge{next: b.next.WithAttrs(attrs), otel: b.otel.WithAttrs(out)}
}

// WithGroup implements slog.Handler.
func (b *bridge) WithGroup(name string) slog.Handler {
	return &bridge{next: b.next.WithGroup(name), otel: b.otel.WithGroup(name)}
}

// admit appends what may leave the machine of an attribute: plain values, and
// of an error its kind. Its text goes with it unless somebody else's words may
// stand in it, which the operator finds on standard error.
func admit(attrs []slog.Attr, a slog.Attr) []slog.Attr {
	value := a.Value.Resolve()
	switch value.Kind() {
	case slog.KindGroup:
		var inner []slog.Attr
		for _, member := range value.Group() {
			inner = admit(inner, member)
		}
		return append(attrs, slog.Attr{Key: a.Key, Value: slog.GroupValue(inner...)})
	case slog.KindAny:
	default:
		return append(attrs, slog.Attr{Key: a.Key, Value: value})
	}
	switch v := value.Any().(type) {
	case error:
		attrs = append(attrs, slog.String(telemetry.AttrErrorType, kind(v)))
		if ours(v) {
			attrs = append(attrs, slog.String(a.Key, v.Error()))
		}
	case []string:
		attrs = append(attrs, slog.Any(a.Key, v))
	}
	return attrs
}

// kind is an error's kind, and its code where it has one.
func kind(err error) string {
	if code := fault.CodeOf(err); code != "" {
		return fault.Of(err).String() + ":" + code
	}
	return fault.Of(err).String()
}

// ours reports whether an error's text is the host's own. A plugin's error may
// quote the plugin, and an internal one whatever broke.
func ours(err error) bool {
	return fault.Of(err) != fault.Internal && !quotes(err)
}

// quotes looks for an error of a plugin.
func quotes(err error) bool {
	for err != nil {
		if f, ok := err.(*fault.Error); ok && f.Kind == fault.Plugin {
			return true
		}
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range many.Unwrap() {
				if quotes(e) {
					return true
				}
			}
			return false
		}
		err = errors.Unwrap(err)
	}
	return false
}
