package jetstream_test

import (
	"strings"
	"testing"
	"time"

	"weir/host/fault"
	"weir/host/store/jetstream"
)

func TestOptions(t *testing.T) {
	dir := func() jetstream.Options { return jetstream.Options{Dir: t.TempDir(), Log: quiet()} }
	urls := func() jetstream.Options {
		return jetstream.Options{URLs: []string{serve(t, nil).Addr().String()}, Log: quiet()}
	}
	clustered := jetstream.Cluster{Name: "c", Server: "s", Listen: "127.0.0.1:0"}
	for _, c := range []struct {
		name   string
		base   func() jetstream.Options
		change func(*jetstream.Options)
		says   string // empty: it opens
	}{
		{"a directory", dir, func(*jetstream.Options) {}, ""},
		{"addresses", urls, func(*jetstream.Options) {}, ""},
		{"neither", dir, func(o *jetstream.Options) { o.Dir = "" }, "either"},
		{"both", dir, func(o *jetstream.Options) { o.URLs = []string{"x"} }, "either"},
		{"a prefix", dir, func(o *jetstream.Options) { o.Prefix = "agent-2" }, ""},
		{"a prefix with a dot", dir, func(o *jetstream.Options) { o.Prefix = "a.b" }, "prefix"},
		{"a prefix with an underscore", dir, func(o *jetstream.Options) { o.Prefix = "a_1" }, "prefix"},
		{"two replicas", dir, func(o *jetstream.Options) { o.Replicas = 2 }, "replicas"},
		{"replicas without a cluster", dir, func(o *jetstream.Options) { o.Replicas = 3 }, "cluster"},
		{"for ever", dir, func(o *jetstream.Options) { o.MaxAge = -1 }, ""},
		{"a short age", dir, func(o *jetstream.Options) { o.MaxAge = time.Millisecond }, "age"},
		{"synced later", dir, func(o *jetstream.Options) { o.SyncEvery = time.Second }, ""},
		{"a negative size", dir, func(o *jetstream.Options) { o.MaxBytes = -1 }, "negative"},
		{"two logins", urls, func(o *jetstream.Options) { o.Login = jetstream.Login{Token: "x", SeedFile: "y"} }, "one way"},
		{"a user alone", urls, func(o *jetstream.Options) { o.Login.User = "x" }, "password"},
		{"a missing seed", urls, func(o *jetstream.Options) { o.Login.SeedFile = "missing" }, "seed"},
		{"a certificate alone", urls, func(o *jetstream.Options) { o.TLS.Certificate = "x" }, "key"},
		{"missing authorities", urls, func(o *jetstream.Options) { o.TLS.Authorities = "missing" }, "authorities"},
		{"a login inside", dir, func(o *jetstream.Options) { o.Login.Token = "x" }, "inside"},
		{"a cluster elsewhere", urls, func(o *jetstream.Options) { o.Cluster = clustered }, "directory"},
		{"a cluster without a server", dir, func(o *jetstream.Options) { o.Cluster = clustered; o.Cluster.Server = "" }, "name"},
		{"a cluster without a port", dir, func(o *jetstream.Options) { o.Cluster = clustered; o.Cluster.Listen = "127.0.0.1" }, "host:port"},
		{"an open cluster", dir, func(o *jetstream.Options) { o.Cluster = clustered; o.Cluster.Listen = "0.0.0.0:0" }, "password"},
		{"a cluster with half of TLS", dir, func(o *jetstream.Options) { o.Cluster = clustered; o.Cluster.TLS.Authorities = "x" }, "certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := c.base()
			c.change(&opts)
			s, err := jetstream.Open(t.Context(), opts)
			if err == nil {
				s.Close()
			}
			if c.says == "" && err != nil {
				t.Errorf("open: %v", err)
			}
			if c.says != "" && (fault.Of(err) != fault.Invalid || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("open: %v, want kind invalid that says %q", err, c.says)
			}
		})
	}
}

// At the limit appends fail with Limit, and reading goes on.
func TestMaxBytes(t *testing.T) {
	s := open(t, jetstream.Options{Dir: t.TempDir(), MaxBytes: 1 << 20})
	var position int64
	var err error
	for err == nil && position < 20 {
		if position, err = s.Append(t.Context(), "runs.a", position, "i", [][]byte{make([]byte, 100<<10)}); err == nil {
			continue
		}
	}
	if fault.Of(err) != fault.Limit {
		t.Errorf("append to a full store: %v, want kind limit", err)
	}
	if got := positions(t, s, "runs.a"); len(got) < 5 {
		t.Errorf("positions %v of a full store", got)
	}
}

// A watch whose notes were lost finds out.
func TestLostNotes(t *testing.T) {
	s := open(t, jetstream.Options{Dir: t.TempDir()}.ProbeEvery(50*time.Millisecond))
	p, err := s.Peer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := s.LoseNotes(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Append(t.Context(), "runs.a", 0, "i1", [][]byte{{1}}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for m, err := range s.Watch(t.Context(), "runs.a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; m.Position == 1 {
			if _, err := p.Append(t.Context(), "runs.a", 1, "i2", [][]byte{{2}}); err != nil {
				t.Fatal(err)
			}
		} else if err := p.End(t.Context(), "runs.a"); err != nil {
			t.Fatal(err)
		}
	}
	if n != 2 {
		t.Errorf("the watch saw %d messages, want 2", n)
	}
}
