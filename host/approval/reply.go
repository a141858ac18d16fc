package approval

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"weir/abi"
	"weir/abi/strictjson"
)

// newClient makes connections that serve one request each: changes are rare, and
// a pooled connection that the server has closed meanwhile would lose one.
func newClient(opts ExecutorOptions) *http.Client {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	dialer := &net.Dialer{}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				ctx, cancel := context.WithTimeout(ctx, opts.Connect)
				defer cancel()
				return dialer.DialContext(ctx, network, address)
			},
			Protocols:              &protocols,
			TLSHandshakeTimeout:    opts.Connect,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: 64 << 10,
		},
		// The key and the token are for one address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// reply is what came back of one POST.
type reply struct {
	sent     bool    // the request may have reached the server
	status   int     // 0: no answer
	readable bool    // the body is an object of the endpoint's
	ok       bool    // its ok
	result   abi.Raw // its result, without identities; null when absent
}

// read takes an answer apart. Whatever cannot be read completely and strictly,
// or would show the token to a model, is not readable.
func (e *Executor) read(resp *http.Response, token string) reply {
	r := reply{sent: true, status: resp.StatusCode, result: abi.Raw("null")}
	body, err := io.ReadAll(io.LimitReader(resp.Body, e.opts.MaxBody+1))
	if err != nil || int64(len(body)) > e.opts.MaxBody || strings.Contains(string(body), token) {
		return r
	}
	d := strictjson.NewDecoder(body)
	err = d.Object(func(name string) (err error) {
		switch name {
		case "ok":
			r.ok, err = d.Bool()
		case "result":
			var raw []byte
			if raw, err = d.Raw(); err == nil {
				r.result, err = compact(raw)
			}
		default:
			err = d.Skip()
		}
		return err
	})
	if err == nil {
		err = d.End()
	}
	if err != nil {
		return reply{sent: true, status: resp.StatusCode}
	}
	r.readable = true
	return r
}

func (r *reply) success() bool { return r.status >= 200 && r.status <= 299 }

// executed maps a first answer (4.5).
func (r reply) executed() Outcome {
	switch {
	case r.readable:
		return Outcome{Committed: r.success() && r.ok, Result: r.result}
	case r.status == 0 && r.sent:
		return unknown()
	case r.status == 0:
		return Outcome{Result: failure("the approved change could not be applied")}
	}
	// A success that cannot be read, or the answer of a proxy that waited for
	// the server, says nothing of what the server did.
	lost := r.success() || r.status == http.StatusBadGateway || r.status == http.StatusGatewayTimeout
	return Outcome{Unknown: lost, Result: failure("the approval execution endpoint answered " + statusLine(r.status))}
}

// settled maps the answer to a token that may have been used before.
func (r reply) settled() Outcome {
	if !r.readable {
		return unknown()
	}
	if r.success() && r.ok {
		return Outcome{Committed: true, Result: r.result}
	}
	switch reason, refused := r.reason(); {
	case reason == alreadyUsed:
		return Outcome{Committed: true, Result: abi.Raw(`{"settled":true}`)}
	case refused && r.success(), r.status == http.StatusForbidden && reason != "" && !early(reason):
		return Outcome{Result: r.result}
	}
	return unknown()
}

const alreadyUsed = "this approval has already been used"

// early tells reasons that the server gives before it has looked at the nonce
// (4.4), or that say nothing about it: a token that was used before gets them
// as well.
func early(reason string) bool {
	switch reason {
	case "approval token has invalid format", "approval token signature is not base64url",
		"approval token signature is invalid", "approval token payload is not base64url",
		"approval token payload is invalid", "approval token version is not supported",
		"approval token has expired", "approval token lifetime exceeds the maximum this server accepts",
		"the approved change could not be applied":
		return true
	}
	return strings.HasPrefix(reason, "unknown approval action")
}

// reason reads {"refused": text} or {"error": text}.
func (r *reply) reason() (text string, refused bool) {
	d := strictjson.NewDecoder(r.result)
	if d.Kind() != strictjson.Object {
		return "", false
	}
	_ = d.Object(func(name string) error {
		if (name == "refused" || name == "error") && d.Kind() == strictjson.String {
			var err error
			refused = name == "refused"
			text, err = d.String()
			return err
		}
		return d.Skip()
	})
	return text, refused
}

func unknown() Outcome {
	return Outcome{Unknown: true, Result: failure("it is not known whether the approved change was applied")}
}

// statusLine is a status with its standard text, never the server's.
func statusLine(status int) string {
	if text := http.StatusText(status); text != "" {
		return fmt.Sprintf("%d %s", status, text)
	}
	return fmt.Sprintf("%d", status)
}

// compact returns a value without white space, and without actor_id at any
// depth: no identity goes to a model or the stream.
func compact(value []byte) (abi.Raw, error) {
	return appendStripped(nil, strictjson.NewDecoder(value))
}

func appendStripped(b []byte, d *strictjson.Decoder) (abi.Raw, error) {
	first := true
	comma := func() {
		if !first {
			b = append(b, ',')
		}
		first = false
	}
	switch d.Kind() {
	case strictjson.Object:
		b = append(b, '{')
		err := d.Object(func(name string) (err error) {
			if name == "actor_id" {
				return d.Skip()
			}
			comma()
			b = append(strictjson.AppendString(b, name), ':')
			b, err = appendStripped(b, d)
			return err
		})
		return append(b, '}'), err
	case strictjson.Array:
		b = append(b, '[')
		err := d.Array(func() (err error) {
			comma()
			b, err = appendStripped(b, d)
			return err
		})
		return append(b, ']'), err
	}
	raw, err := d.Raw()
	return append(b, raw...), err
}
