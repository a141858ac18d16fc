package jetstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/host/fault"
	"weir/host/porttest"
	"weir/host/store"
	"weir/host/store/jetstream"
	"weir/host/store/storetest"
)

// cluster returns the options of three servers that find each other.
func cluster(t *testing.T) []jetstream.Options {
	t.Helper()
	const size = 3
	var opts []jetstream.Options
	var routes []string
	for i, address := range porttest.Free(t, size) {
		routes = append(routes, "nats-route://"+address)
		opts = append(opts, jetstream.Options{
			Dir: t.TempDir(), Replicas: size, Log: quiet(), StartTimeout: time.Minute,
			Cluster: jetstream.Cluster{
				Name: "test", Server: fmt.Sprintf("weir-%d", i), Listen: address,
				User: "weir", Password: "correct",
			},
		})
	}
	for i := range opts {
		opts[i].Cluster.Routes = routes
	}
	return opts
}

// openAll opens the stores at once, because a majority must be up.
func openAll(t *testing.T, opts []jetstream.Options) []*jetstream.Store {
	t.Helper()
	stores := make([]*jetstream.Store, len(opts))
	var wg sync.WaitGroup
	for i := range opts {
		wg.Go(func() {
			var err error
			if stores[i], err = jetstream.Open(t.Context(), opts[i]); err != nil {
				t.Errorf("open %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	t.Cleanup(func() {
		for _, s := range stores {
			if s != nil {
				s.Close()
			}
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return stores
}

// The suite on three servers with three replicas. Each test has a prefix of its
// own, and its stores are at different servers.
func TestCluster(t *testing.T) {
	stores := openAll(t, cluster(t))
	prefix, n := "", 0
	at := func(i int) func(*testing.T, store.Store) store.Store {
		return func(t *testing.T, _ store.Store) store.Store {
			s, err := stores[i].PeerWith(t.Context(), prefix)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	storetest.Run(t, storetest.Backend{
		RealTime: true,
		Open: func(t *testing.T) store.Store {
			n++
			prefix = fmt.Sprintf("t%d", n)
			return at(0)(t, nil)
		},
		Peer:   at(1),
		Reopen: at(2),
	})
}

// nodeOptions is set for a process of this test binary that is to be a server of
// a cluster until it is killed.
const nodeOptions = "WEIR_TEST_STORE_NODE"

// node runs one server of a cluster.
func node(text string) error {
	var opts jetstream.Options
	if err := json.Unmarshal([]byte(text), &opts); err != nil {
		return err
	}
	opts.Log = quiet()
	s, err := jetstream.Open(context.Background(), opts)
	if err != nil {
		return err
	}
	fmt.Println("open")
	_, err = io.Copy(io.Discard, os.Stdin) // until the parent is gone
	return errors.Join(err, s.Close())
}

// startNode runs one server of a cluster in a process of its own.
func startNode(t *testing.T, opts jetstream.Options) *exec.Cmd {
	t.Helper()
	opts.Log = nil
	text, err := json.Marshal(opts)
	if err != nil {
		t.Fatal(err)
	}
	p := exec.Command(os.Args[0])
	p.Env = append(os.Environ(), nodeOptions+"="+string(text))
	p.Stderr = os.Stderr
	if _, err := p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Process.Kill()
		p.Wait()
	})
	return p
}

// One of three processes, the one that leads the logs, is killed while appenders
// at the two others append and watch: every append that was acknowledged is
// there once, positions are dense, and the others go on.
func TestClusterLosesAProcess(t *testing.T) {
	opts := cluster(t)
	victim := startNode(t, opts[2])
	stores := openAll(t, opts[:2])
	if err := stores[0].MakeLeader(t.Context(), opts[2].Cluster.Server); err != nil {
		t.Fatal(err)
	}
	const each = 30
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var done atomic.Int64
	halfway := make(chan struct{})
	acknowledged := make([]map[string]int64, 2)
	var wg sync.WaitGroup
	for a, s := range stores {
		acknowledged[a] = make(map[string]int64)
		wg.Go(func() {
			position := int64(0)
			for i := range each {
				id := fmt.Sprintf("a%d-%d", a, i)
				at, err := persist(ctx, s, "runs.a", position, id)
				if err != nil {
					t.Errorf("append %s: %v", id, err)
					return
				}
				acknowledged[a][id], position = at, at
				if done.Add(1) == each {
					close(halfway)
				}
			}
		})
	}
	var watched []int64
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		for m, err := range stores[1].Watch(ctx, "runs.a", 0) {
			if err != nil {
				t.Errorf("watch: %v", err)
				return
			}
			watched = append(watched, m.Position)
		}
	}()
	select {
	case <-halfway:
		victim.Process.Kill()
	case <-ctx.Done():
	}
	wg.Wait()
	if err := persistently(ctx, func() error { return stores[0].End(ctx, "runs.a") }); err != nil {
		t.Fatalf("end: %v", err)
	}
	<-seen

	found := map[string]int64{}
	next := int64(1)
	for m, err := range stores[1].Read(ctx, "runs.a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Position != next {
			t.Errorf("position %d follows %d", m.Position, next-1)
		}
		next++
		if _, twice := found[m.ID]; twice {
			t.Errorf("%s is there twice", m.ID)
		}
		found[m.ID] = m.Position
	}
	for _, acks := range acknowledged {
		for id, position := range acks {
			if found[id] != position {
				t.Errorf("%s was acknowledged at %d and is at %d", id, position, found[id])
			}
		}
	}
	if len(found) != 2*each || len(watched) != 2*each {
		t.Errorf("%d messages are there and %d were watched, want %d", len(found), len(watched), 2*each)
	}
}

// persist appends behind everybody else, however often it takes.
func persist(ctx context.Context, s store.Store, log string, position int64, id string) (int64, error) {
	var at int64
	err := persistently(ctx, func() error {
		var err error
		at, err = store.AppendSettled(ctx, s, log, position, id, [][]byte{[]byte("x")},
			func([]store.Message) bool { return true })
		return err
	})
	return at, err
}

// persistently repeats while a majority looks for a leader.
func persistently(ctx context.Context, attempt func() error) error {
	for {
		err := attempt()
		if kind := fault.Of(err); err == nil || kind != fault.Unavailable && kind != fault.Conflict || ctx.Err() != nil {
			return err
		}
	}
}
