package jetstream_test

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"

	"weir/host/store"
	"weir/host/store/jetstream"
	"weir/host/store/storetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		fmt.Fprintln(os.Stderr, child(dir))
		os.Exit(1)
	}
	if opts := os.Getenv(nodeOptions); opts != "" {
		fmt.Fprintln(os.Stderr, node(opts))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

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

// crashed returns a store on a copy of what a running one has on its disk, which
// is what a killed process leaves.
func crashed(t *testing.T, s store.Store, dir string) store.Store {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	return open(t, jetstream.Options{Dir: to})
}

// Late logs are logs like any other, beside others and among them.
func TestLateLogs(t *testing.T) {
	storetest.Run(t, storetest.Backend{
		RealTime: true,
		Open:     func(t *testing.T) store.Store { return open(t, jetstream.Options{Dir: t.TempDir(), LateLogs: "runs."}) },
		Peer:     peer,
	})
}

func peer(t *testing.T, s store.Store) store.Store {
	p, err := s.(*jetstream.Store).Peer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEmbedded(t *testing.T) {
	dirs := map[store.Store]string{}
	storetest.Run(t, storetest.Backend{
		RealTime: true,
		Open: func(t *testing.T) store.Store {
			dir := t.TempDir()
			s := open(t, jetstream.Options{Dir: dir})
			dirs[s] = dir
			return s
		},
		Peer:   peer,
		Reopen: func(t *testing.T, s store.Store) store.Store { return crashed(t, s, dirs[s]) },
	})
}
