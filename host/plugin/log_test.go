package plugin_test

import (
	"context"
	"log/slog"
	"testing"

	"weir/host/logtest"
	"weir/host/plugin"
)

// lines is a log that tests read.
type lines struct{ logtest.Buffer }

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func newRuntimeWith(t testing.TB, opts plugin.RuntimeOptions) *plugin.Runtime {
	t.Helper()
	r, err := plugin.NewRuntime(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	return r
}
