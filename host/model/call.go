package model

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"weir/abi"
	"weir/host/fault"
)

// Causes of a call's end that the caller is told apart by.
var (
	errFirstToken = errors.New("no first token in time")
	errSilence    = errors.New("no further chunk in time")
	errTooLarge   = errors.New("reply over the limit")
)

// retryPause lets a server that restarts or sheds load come back.
const retryPause = 100 * time.Millisecond

// call is one request on its way. Its timer ends it; the phases of the reply
// set the timer anew.
type call struct {
	c      *Client
	e      *endpoint
	parent context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	begun  atomic.Bool // the first chunk is there
}

func (c *Client) newCall(parent context.Context, e *endpoint) *call {
	ctx, cancel := context.WithCancelCause(parent)
	k := &call{c: c, e: e, parent: parent, ctx: ctx, cancel: cancel}
	k.timer = time.AfterFunc(c.opts.FirstToken, k.expire)
	return k
}

func (k *call) expire() {
	if k.begun.Load() {
		k.cancel(errSilence)
	} else {
		k.cancel(errFirstToken)
	}
}

func (k *call) close() {
	k.timer.Stop()
	k.cancel(nil)
}

// pause stops the clock while the host, not the provider, is at work.
func (k *call) pause() {
	k.timer.Stop()
	k.begun.Store(true)
}

// allow gives the provider that long for its next chunk.
func (k *call) allow(d time.Duration) { k.timer.Reset(d) }

func (k *call) run(body []byte, stream bool, onText func(string)) (*Reply, error) {
	response, err := k.post(body, stream)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, statusError(response.StatusCode)
	}
	bounded := &boundedReader{r: response.Body, left: k.c.opts.MaxStream}
	if stream {
		return k.stream(bounded, onText)
	}
	return k.whole(bounded)
}

// post sends the request, a second time if no connection came about.
func (k *call) post(body []byte, stream bool) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		response, err := k.send(body, stream)
		if err == nil {
			return response, nil
		}
		var dial *dialError
		if attempt == 2 || !errors.As(err, &dial) {
			return nil, err
		}
		select {
		case <-time.After(retryPause):
		case <-k.ctx.Done():
			return nil, k.ctx.Err()
		}
	}
}

func (k *call) send(body []byte, stream bool) (*http.Response, error) {
	req, err := http.NewRequestWithContext(k.ctx, http.MethodPost, k.e.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "weir")
	if stream {
		req.Header.Set("Accept", "text/event-stream")
	} else {
		req.Header.Set("Accept", "application/json")
	}
	if k.e.bearer != "" {
		req.Header.Set("Authorization", k.e.bearer)
	}
	// An empty value is not sent. It lets net/http repeat the request when an
	// idle connection turns out to be closed, before a byte of the response.
	req.Header["Idempotency-Key"] = nil
	return k.c.http.Do(req)
}

type statusError int

func (s statusError) Error() string { return http.StatusText(int(s)) }

// failure turns an error into what the caller may know of it. The causes that
// net/http gives hold the address and are not wrapped.
func (k *call) failure(err error) error {
	cause := context.Cause(k.ctx)
	switch {
	case cause == errFirstToken:
		return k.fault(abi.FailTimeout, "no first token within %v", k.c.opts.FirstToken)
	case cause == errSilence:
		return k.fault(abi.FailTimeout, "no further chunk within %v", k.c.opts.BetweenChunks)
	case errors.Is(k.parent.Err(), context.DeadlineExceeded):
		return k.fault(abi.FailTimeout, "no reply in time: %w", context.DeadlineExceeded)
	case k.parent.Err() != nil:
		return k.fault(abi.FailUnavailable, "given up: %w", context.Canceled)
	}
	var status statusError
	var dial *dialError
	var bad *badReply
	var timeout net.Error
	switch {
	case errors.As(err, &status):
		return k.fault(abi.FailUnavailable, "status %d", int(status))
	case errors.As(err, &dial):
		return k.dialFault(dial)
	case errors.As(err, &bad):
		return k.fault(abi.FailBadReply, "%s", bad.reason)
	case errors.Is(err, errTooLarge):
		return k.fault(abi.FailBadReply, "expected a reply of at most %d bytes", k.c.opts.MaxStream)
	case errors.As(err, &timeout) && timeout.Timeout(): // of the TLS handshake
		return k.fault(abi.FailTimeout, "no connection within %v", k.c.opts.Connect)
	}
	return k.fault(abi.FailUnavailable, "the connection broke")
}

func (k *call) dialFault(d *dialError) error {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(d.err, &timeout) && timeout.Timeout():
		return k.fault(abi.FailTimeout, "no connection within %v", k.c.opts.Connect)
	case errors.Is(d.err, syscall.ECONNREFUSED):
		return k.fault(abi.FailUnavailable, "connection refused")
	case errors.As(d.err, &dns):
		return k.fault(abi.FailUnavailable, "the host's name does not resolve")
	}
	return k.fault(abi.FailUnavailable, "no connection")
}

func (k *call) fault(code, format string, args ...any) error {
	return fault.Coded(fault.Unavailable, code, "model "+k.e.alias+": "+format, args...)
}

// badReply is a reply that is none; reason is the host's own words.
type badReply struct{ reason string }

func (b *badReply) Error() string { return b.reason }

func bad(reason string) error { return &badReply{reason} }

// boundedReader fails where io.LimitReader would pretend an end.
type boundedReader struct {
	r    io.Reader
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	return n, err
}
