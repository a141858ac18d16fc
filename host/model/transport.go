package model

import (
	"context"
	"net"
	"net/http"
	"time"
)

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// dialError marks errors from before there was a connection, the only ones
// after which a request is repeated.
type dialError struct{ err error }

func (d *dialError) Error() string { return "dial failed" }

// newTransport returns a transport without proxy, compression and HTTP/2: a
// stream has a connection of its own, and ending the call closes it.
func newTransport(opts *Options) *http.Transport {
	dial := opts.dial
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, opts.Connect)
			defer cancel()
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, &dialError{err}
			}
			return conn, nil
		},
		Protocols:              &protocols,
		TLSHandshakeTimeout:    opts.Connect,
		DisableCompression:     true,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    32,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}
