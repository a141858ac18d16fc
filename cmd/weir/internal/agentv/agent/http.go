package agent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"weir/abi/strictjson"
	"weir/host/fault"
)

// httpSession posts requests over one pool, so consecutive turns arrive on one
// connection (agentv.md 1.4).
type httpSession struct {
	address   Address
	opts      Options
	client    *http.Client
	transport *http.Transport
}

func newHTTP(a Address, opts Options) *httpSession {
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: opts.Connect}).DialContext,
		TLSHandshakeTimeout: opts.Connect,
		MaxIdleConnsPerHost: 1,
	}
	return &httpSession{a, opts, &http.Client{Transport: t, CheckRedirect: sameHost}, t}
}

// sameHost follows redirects as AgentV does, but not to other hosts: the headers
// may hold credentials, and the run was about this agent.
func sameHost(next *http.Request, before []*http.Request) error {
	if next.URL.Host != before[0].URL.Host || next.URL.Scheme != before[0].URL.Scheme || len(before) > 3 {
		return http.ErrUseLastResponse
	}
	return nil
}

var traceparentForm = regexp.MustCompile(`^00-[a-f0-9]{32}-[a-f0-9]{16}-[a-f0-9]{2}$`)

// Ask implements Session.
func (s *httpSession) Ask(ctx context.Context, request []byte, traceparent string) (Answer, error) {
	ctx, cancel := bounded(ctx, s.opts)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address.URL, bytes.NewReader(request))
	if err != nil {
		return Answer{}, fault.New(fault.Invalid, "agent: expected a URL: %w", err)
	}
	maps.Copy(req.Header, s.opts.Header.Clone())
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "*/*")
	if s.address.Protocol == SSE {
		req.Header.Set("Accept", "text/event-stream")
	}
	if traceparentForm.MatchString(traceparent) {
		req.Header.Set("Traceparent", traceparent)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return Answer{}, ended(ctx, s.opts, fault.Coded(fault.Unavailable, CodeConnect, "agent: expected a connection: %w", cause(err)))
	}
	defer resp.Body.Close()
	body, err := s.read(resp)
	if err != nil {
		return Answer{}, ended(ctx, s.opts, err)
	}
	return Answer{Body: body}, nil
}

func (s *httpSession) read(resp *http.Response) ([]byte, error) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	isJSON := media == "application/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, fault.Coded(fault.Unavailable, CodeStatus, "agent: expected a status of 2xx, got %d%s", resp.StatusCode, excerpt(resp.Body))
	case media == "text/event-stream":
		return s.merge(resp.Body)
	case s.address.Protocol == SSE:
		return nil, fault.Coded(fault.Invalid, CodeForm, "agent: expected text/event-stream, got %.80q", media)
	case !isJSON:
		return nil, fault.Coded(fault.Invalid, CodeForm, "agent: expected application/json, got %.80q", media)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(s.opts.MaxReply)+1))
	switch {
	case len(body) > s.opts.MaxReply:
		return nil, tooLarge(s.opts)
	case err != nil:
		return nil, noAnswer("the connection ended within it: %w", cause(err))
	case len(bytes.TrimSpace(body)) == 0:
		return nil, noAnswer("got an empty body")
	}
	return body, nil
}

// excerpt is the beginning of an error's body, for people.
func excerpt(r io.Reader) string {
	b, _ := io.ReadAll(io.LimitReader(r, 200))
	if b = bytes.TrimSpace(b); len(b) == 0 {
		return ""
	}
	return ": " + strings.ToValidUTF8(string(b), "?")
}

// cause drops what the client adds: the method and the URL, which may hold
// credentials.
func cause(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// merge reads an event stream (agentv.md 1.5): objects are merged in order, the
// texts of content joined, other data is more content.
func (s *httpSession) merge(r io.Reader) ([]byte, error) {
	merged := merger{members: make(map[string][]byte)}
	lines := bufio.NewScanner(io.LimitReader(r, int64(s.opts.MaxReply)+1))
	lines.Buffer(nil, s.opts.MaxReply+1)
	size := 0
	for lines.Scan() {
		if size += len(lines.Bytes()) + 1; size > s.opts.MaxReply {
			return nil, tooLarge(s.opts)
		}
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if !ok {
			continue
		}
		if data = strings.TrimSpace(data); data == "[DONE]" {
			return merged.object()
		}
		merged.add(data)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, tooLarge(s.opts)
	} else if err != nil {
		return nil, noAnswer("the stream ended within it: %w", cause(err))
	}
	return merged.object()
}

type merger struct {
	names   []string
	members map[string][]byte
	content strings.Builder
	text    bool // some content came
}

func (m *merger) add(data string) {
	d := strictjson.NewDecoder([]byte(data))
	if strictjson.Valid([]byte(data)) != nil || d.Kind() != strictjson.Object {
		m.content.WriteString(data)
		m.text = m.text || data != ""
		return
	}
	// The text is a valid object, so nothing can fail but a read that is too early.
	_ = d.Object(func(name string) error {
		if name == "content" && d.Kind() == strictjson.String {
			text, err := d.String()
			m.content.WriteString(text)
			m.text = true
			return err
		}
		raw, err := d.Raw()
		if _, ok := m.members[name]; !ok {
			m.names = append(m.names, name)
		}
		m.members[name] = raw
		return err
	})
}

func (m *merger) object() ([]byte, error) {
	if len(m.names) == 0 && !m.text {
		return nil, noAnswer("got a stream without data")
	}
	b := []byte{'{'}
	for _, name := range m.names {
		if name == "content" && m.text {
			continue
		}
		b = append(strictjson.AppendString(b, name), ':')
		b = append(append(b, m.members[name]...), ',')
	}
	if m.text {
		b = append(strictjson.AppendString(append(b, `"content":`...), m.content.String()), ',')
	}
	b[len(b)-1] = '}'
	return b, nil
}

// Close implements Session.
func (s *httpSession) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}
