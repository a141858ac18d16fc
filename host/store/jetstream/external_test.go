package jetstream_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"weir/host/fault"
	"weir/host/porttest"
	"weir/host/store"
	"weir/host/store/jetstream"
	"weir/host/store/storetest"
)

// serve runs a NATS that listens on loopback.
func serve(t *testing.T, change func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 1 << 30, JetStreamMaxMemory: 1 << 20,
	}
	if change != nil {
		change(o)
	}
	srv, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server is not ready")
	}
	return srv
}

// certify writes an authority and a certificate of it for loopback.
func certify(t *testing.T) jetstream.TLS {
	t.Helper()
	dir := t.TempDir()
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	authorityKey, key := newKey(), newKey()
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "weir"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	sign := func(c *x509.Certificate, of *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, c, authority, of.Public(), authorityKey)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return jetstream.TLS{
		Authorities: write("ca.pem", "CERTIFICATE", sign(authority, authorityKey)),
		Certificate: write("cert.pem", "CERTIFICATE", sign(leaf, key)),
		Key:         write("key.pem", "EC PRIVATE KEY", private),
	}
}

// withTLS makes a server that asks for a certificate, too.
func withTLS(t *testing.T, files jetstream.TLS) func(*server.Options) {
	return func(o *server.Options) {
		pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
		if err != nil {
			t.Fatal(err)
		}
		ca, err := os.ReadFile(files.Authorities)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(ca)
		o.TLS, o.TLSVerify, o.TLSTimeout = true, true, 5
		o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
		o.Username, o.Password = "weir", "correct"
	}
}

// The suite against a NATS elsewhere, over TLS and with a user. Each test has a
// prefix of its own, so they also prove that prefixes do not see each other.
func TestExternal(t *testing.T) {
	files := certify(t)
	srv := serve(t, withTLS(t, files))
	n := 0
	opts := jetstream.Options{
		URLs:  []string{"tls://" + srv.Addr().String()},
		Login: jetstream.Login{User: "weir", Password: "correct"},
		TLS:   files,
	}
	another := func(t *testing.T, _ store.Store) store.Store { return open(t, opts) }
	storetest.Run(t, storetest.Backend{
		RealTime: true,
		Open: func(t *testing.T) store.Store {
			n++
			opts.Prefix = fmt.Sprintf("t%d", n)
			return open(t, opts)
		},
		Peer:   another,
		Reopen: another,
	})
}

func TestLogins(t *testing.T) {
	files := certify(t)
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	other, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seedFile := func(pair nkeys.KeyPair) string {
		seed, err := pair.Seed()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "seed")
		if err := os.WriteFile(path, seed, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name        string
		server      func(*server.Options)
		scheme      string
		right       jetstream.Options
		wrong       jetstream.Options
		refusedWith fault.Kind
	}{
		{
			name:        "user",
			server:      func(o *server.Options) { o.Username, o.Password = "weir", "correct" },
			right:       jetstream.Options{Login: jetstream.Login{User: "weir", Password: "correct"}},
			wrong:       jetstream.Options{Login: jetstream.Login{User: "weir", Password: "other"}},
			refusedWith: fault.Denied,
		},
		{
			name:        "token",
			server:      func(o *server.Options) { o.Authorization = "correct" },
			right:       jetstream.Options{Login: jetstream.Login{Token: "correct"}},
			wrong:       jetstream.Options{},
			refusedWith: fault.Denied,
		},
		{
			name:        "nkey",
			server:      func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: public}} },
			right:       jetstream.Options{Login: jetstream.Login{SeedFile: seedFile(pair)}},
			wrong:       jetstream.Options{Login: jetstream.Login{SeedFile: seedFile(other)}},
			refusedWith: fault.Denied,
		},
		{
			name:        "a certificate",
			server:      withTLS(t, files),
			scheme:      "tls://",
			right:       jetstream.Options{Login: jetstream.Login{User: "weir", Password: "correct"}, TLS: files},
			wrong:       jetstream.Options{Login: jetstream.Login{User: "weir", Password: "correct"}, TLS: jetstream.TLS{Authorities: files.Authorities}},
			refusedWith: fault.Unavailable,
		},
		{
			name:        "an authority",
			server:      withTLS(t, files),
			scheme:      "tls://",
			right:       jetstream.Options{Login: jetstream.Login{User: "weir", Password: "correct"}, TLS: files},
			wrong:       jetstream.Options{Login: jetstream.Login{User: "weir", Password: "correct"}},
			refusedWith: fault.Unavailable,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := c.scheme + serve(t, c.server).Addr().String()
			c.right.URLs, c.wrong.URLs = []string{url}, []string{url}
			s := open(t, c.right)
			if _, err := s.Put(t.Context(), "k", []byte("v"), 0, 0); err != nil {
				t.Errorf("with the right login: %v", err)
			}
			c.wrong.Log = quiet()
			if s, err := jetstream.Open(t.Context(), c.wrong); fault.Of(err) != c.refusedWith || err == nil {
				t.Errorf("with the wrong login: %v, %v, want kind %v", s, err, c.refusedWith)
			}
		})
	}
}

func TestNobodyThere(t *testing.T) {
	_, err := jetstream.Open(t.Context(), jetstream.Options{URLs: porttest.Free(t, 1), Log: quiet()})
	if fault.Of(err) != fault.Unavailable {
		t.Errorf("open without a server: %v, want kind unavailable", err)
	}
	srv := serve(t, func(o *server.Options) { o.JetStream = false })
	_, err = jetstream.Open(t.Context(), jetstream.Options{URLs: []string{srv.Addr().String()}, StartTimeout: time.Second, Log: quiet()})
	if fault.Of(err) != fault.Unavailable {
		t.Errorf("open without jetstream: %v, want kind unavailable", err)
	}
}

// restartable returns what starts a server, each time with the same data and at
// the same address.
func restartable(t *testing.T) (run func() *server.Server) {
	dir := t.TempDir()
	at, err := net.ResolveTCPAddr("tcp", porttest.Free(t, 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	return func() *server.Server {
		return serve(t, func(o *server.Options) { o.StoreDir, o.Port = dir, at.Port })
	}
}

// A server that was away comes back: calls fail with Unavailable meanwhile,
// nothing is sent later, and watches go on.
func TestServerComesBack(t *testing.T) {
	run := restartable(t)
	srv := run()
	s := open(t, jetstream.Options{URLs: []string{srv.Addr().String()}, Timeout: time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.Append(ctx, "runs.a", 0, "i1", [][]byte{{1}}); err != nil {
		t.Fatal(err)
	}
	positions := make(chan int64, 2)
	go func() {
		defer close(positions)
		for m, err := range s.Watch(ctx, "runs.a", 0) {
			if err != nil {
				t.Errorf("watch: %v", err)
				return
			}
			positions <- m.Position
		}
	}()
	<-positions
	srv.Shutdown()
	srv.WaitForShutdown()
	s.Wake() // the watch asks nobody
	if _, err := s.Append(ctx, "runs.a", 1, "i2", [][]byte{{2}}); fault.Of(err) != fault.Unavailable {
		t.Errorf("append without a server: %v, want kind unavailable", err)
	}
	run()
	at, err := int64(0), error(nil)
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); {
		if at, err = s.Append(ctx, "runs.a", 1, "i3", [][]byte{{3}}); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil || at != 2 {
		t.Fatalf("append to the server that came back = %d, %v, want 2", at, err)
	}
	if got := <-positions; got != 2 {
		t.Errorf("the watch gave position %d, want 2", got)
	}
	if err := s.End(ctx, "runs.a"); err != nil {
		t.Errorf("end: %v", err)
	}
	if _, more := <-positions; more {
		t.Error("the watch goes on after the end")
	}
}
