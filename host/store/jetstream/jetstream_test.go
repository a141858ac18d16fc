package jetstream_test

import (
	"io"
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"weir/host/store"
	"weir/host/store/jetstream"
	"weir/host/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func open(t *testing.T, opts jetstream.Options) *jetstream.Store {
	t.Helper()
	if opts.Log == nil {
		opts.Log = quiet()
	}
	s, err := jetstream.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestEmbedded(t *testing.T) {
	storetest.Run(t, storetest.Backend{
		Open:     func(t *testing.T) store.Store { return open(t, jetstream.Options{Dir: t.TempDir()}) },
		RealTime: true,
	})
}
