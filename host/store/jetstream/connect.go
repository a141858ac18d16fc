package jetstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"weir/host/fault"
)

// connect returns a connection, to the given server or to the one of the
// options. A connection to a server elsewhere is made again when it was lost,
// for as long as the store is open.
func connect(ctx context.Context, opts Options, server *embedded) (*nats.Conn, error) {
	options := []nats.Option{
		nats.Name("weir"),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(500 * time.Millisecond),
		nats.ReconnectBufSize(-1), // what cannot be sent now fails now, instead of being sent when nobody waits
		nats.Timeout(opts.Timeout),
		nats.NoEcho(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			opts.Log.Warn("nats: " + err.Error())
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				opts.Log.Warn("nats: the connection was lost: " + err.Error())
			}
		}),
	}
	url := strings.Join(opts.URLs, ",")
	if server != nil {
		url = ""
		options = append(options, nats.InProcessServer(server.srv), nats.UserInfo(server.login.User, server.login.Password))
	} else {
		more, err := remote(opts)
		if err != nil {
			return nil, err
		}
		options = append(options, more...)
	}
	conn, err := nats.Connect(url, options...)
	if errors.Is(err, nats.ErrAuthorization) {
		return nil, fault.New(fault.Denied, "connect to nats: %w", err)
	}
	if err != nil {
		return nil, fault.New(fault.Unavailable, "connect to nats: %w", err)
	}
	if err := checkServer(conn); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, ctx.Err()
}

// remote returns the options for a server elsewhere.
func remote(opts Options) ([]nats.Option, error) {
	var options []nats.Option
	switch l := opts.Login; {
	case l.User != "":
		options = append(options, nats.UserInfo(l.User, l.Password))
	case l.Token != "":
		options = append(options, nats.Token(l.Token))
	case l.CredentialsFile != "":
		options = append(options, nats.UserCredentials(l.CredentialsFile))
	case l.SeedFile != "":
		nkey, err := nats.NkeyOptionFromSeed(l.SeedFile)
		if err != nil {
			return nil, fault.New(fault.Invalid, "read the seed of the nkey: %w", err)
		}
		options = append(options, nkey)
	}
	if opts.TLS == (TLS{}) {
		return options, nil
	}
	config, err := opts.TLS.config()
	if err != nil {
		return nil, err
	}
	return append(options, nats.Secure(config)), nil
}

// checkServer refuses a server that lacks what the store is built on.
func checkServer(conn *nats.Conn) error {
	v := conn.ConnectedServerVersion()
	var major, minor int
	if n, _ := fmt.Sscanf(v, "%d.%d", &major, &minor); n < 2 || major < 2 || major == 2 && minor < 11 {
		return fault.New(fault.Invalid, "expected a nats server of version 2.11 or newer, found %q", v)
	}
	if conn.MaxPayload() < maxPayload {
		return fault.New(fault.Invalid, "expected a nats server that takes messages of %d bytes, found %d", maxPayload, conn.MaxPayload())
	}
	return nil
}

// config reads the files. Both sides of a cluster verify each other with it.
func (t TLS) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.Authorities != "" {
		pem, err := os.ReadFile(t.Authorities)
		if err != nil {
			return nil, fault.New(fault.Invalid, "read the authorities: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fault.New(fault.Invalid, "expected certificates in %s", t.Authorities)
		}
		config.RootCAs, config.ClientCAs, config.ClientAuth = pool, pool, tls.RequireAndVerifyClientCert
	}
	if t.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
		if err != nil {
			return nil, fault.New(fault.Invalid, "read the certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
