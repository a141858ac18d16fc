package tool

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

var errTooLarge = errors.New("the response is larger than allowed")

// courier carries the HTTP requests of one session: it adds the key, ends with
// the session whatever the SDK still waits for, bounds what comes back and
// notes on the request's exchange what happened.
type courier struct {
	base    http.RoundTripper
	key     string
	limit   int64
	life    context.Context
	version atomic.Pointer[string] // negotiated, once known
	heard   atomic.Int64           // when the server last answered, in nanoseconds
}

// newCarrier is the connection pool of one session. No proxy from the
// environment: the key goes to the configured host and nowhere else.
func newCarrier(connect time.Duration) *http.Transport {
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: connect}).DialContext,
		TLSHandshakeTimeout:    connect,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        60 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
}

// client follows no redirect: a server that moves is a server that fails.
func (r *courier) client() *http.Client {
	return &http.Client{
		Transport:     r,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// RoundTrip implements http.RoundTripper.
func (r *courier) RoundTrip(req *http.Request) (*http.Response, error) {
	x := exchangeOf(req.Context())
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(r.life, cancel)
	release := func() { stop(); cancel() }

	req = req.Clone(ctx)
	req.Header.Set("Authorization", "Bearer "+r.key)
	if v := r.version.Load(); v != nil && req.Header.Get(headerVersion) == "" {
		req.Header.Set(headerVersion, *v)
	}
	resp, err := r.base.RoundTrip(req)
	if err != nil {
		release()
		x.failed(err)
		return nil, err
	}
	r.heard.Store(time.Now().UnixNano())
	x.answered(resp.StatusCode, req.Header.Get(headerSession) != "")
	resp.Body = &boundedBody{body: resp.Body, left: r.limit, release: release, exchange: x}
	return resp, nil
}

// boundedBody fails a read beyond its limit.
type boundedBody struct {
	body     io.ReadCloser
	left     int64
	release  func()
	exchange *exchange
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	if b.left -= int64(n); b.left < 0 {
		b.exchange.failed(errTooLarge)
		return n - 1, errTooLarge
	}
	if err != nil && err != io.EOF {
		b.exchange.failed(err)
	}
	return n, err
}

func (b *boundedBody) Close() error {
	defer b.release()
	return b.body.Close()
}
