// Package client asks an agent that serves the agent-service contract as an
// evaluator does, over HTTP, and reads its stream exactly as agent-service.md,
// 10.3 says. It tells a harness that does not work (no answer, a refused key,
// a stream that is none) from an agent that answers badly: the first is an
// error of type [*Broken] and never an [Observation].
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Principal is who asks unless [Options] says otherwise.
const Principal = "evaluation-harness"

// workflowPath is where the contract is served.
const workflowPath = "/v1/workflow/full"

// steps are the step types that an evaluator asks for.
const steps = "WORKFLOW_START,WORKFLOW_END,TOOL_START,TOOL_END,FUNCTION_START,FUNCTION_END"

// maxStream bounds a whole answer, maxVersion the body of /version.
const (
	maxStream  = 64 << 20
	maxVersion = 1 << 20
)

// Options configures an [Agent]; the zero value has the evaluator's values.
type Options struct {
	Principal string        // x-authenticated-user-id, [Principal] by default
	Tools     []string      // names that count as tools; search_tickets and get_ticket by default
	Timeout   time.Duration // of a case with its whole stream, 6 minutes by default; also of each silence in it
	Attempts  int           // tries before a stream has begun, 4 by default; refusals are not tried again
	Backoff   time.Duration // before the second try, doubled for each further one, 1 s by default
	Version   time.Duration // time-out of /version, 10 s by default
}

func (o Options) validate() (Options, error) {
	if o.Principal == "" {
		o.Principal = Principal
	}
	if len(o.Tools) == 0 {
		o.Tools = []string{"search_tickets", "get_ticket"}
	}
	defaults(&o.Timeout, 6*time.Minute)
	defaults(&o.Backoff, time.Second)
	defaults(&o.Version, 10*time.Second)
	if o.Attempts == 0 {
		o.Attempts = 4
	}
	if o.Attempts < 1 || o.Attempts > 10 || o.Timeout < 0 || o.Backoff < 0 || o.Version < 0 {
		return o, errors.New("expected 1 to 10 attempts and time-outs above zero")
	}
	return o, nil
}

func defaults(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// Broken says that the harness does not work: nothing is known about the
// agent's answer.
type Broken struct {
	Reason string
	// Final: asking again, or asking something else, cannot help.
	Final bool
	retry bool
}

func (b *Broken) Error() string { return b.Reason }

// Agent is one agent. It may be used by several goroutines.
type Agent struct {
	workflow string // the route's URL with its query
	version  string
	origin   string // for people
	key      string
	opts     Options
	client   *http.Client
}

// New returns an agent at an address: its origin (http://host:port), or the
// full URL of the workflow's route, from which that of /version is derived as
// 11.4 says. The key is sent as a bearer token and never printed.
func New(address, key string, opts Options) (*Agent, error) {
	opts, err := opts.validate()
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, errors.New("expected an address such as http://127.0.0.1:8000, without user, query and fragment")
	}
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return nil, errors.New("expected a key of printable ASCII characters")
	}
	base := strings.TrimRight(address, "/")
	route := base
	if i := strings.Index(base, "/v1/"); i >= 0 {
		base = base[:i]
	} else {
		route += workflowPath
	}
	return &Agent{
		workflow: route + "?" + url.Values{"filter_steps": {steps}}.Encode(),
		version:  base + "/version", origin: base, key: key, opts: opts,
		client: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
				TLSHandshakeTimeout:    10 * time.Second,
				MaxResponseHeaderBytes: 64 << 10,
				DisableCompression:     true,
				MaxIdleConnsPerHost:    2,
				IdleConnTimeout:        30 * time.Second,
			},
		},
	}, nil
}

// Origin is the agent's address, for people.
func (a *Agent) Origin() string { return a.origin }

// Close ends idle connections.
func (a *Agent) Close() { a.client.CloseIdleConnections() }

// Ask puts one question and reads the whole stream. Its error is a [*Broken]
// or the context's.
func (a *Agent) Ask(ctx context.Context, caseID, question string) (*Observation, error) {
	body, err := json.Marshal(map[string]any{
		"messages": []map[string]string{{"role": "user", "content": question}},
		"stream":   true, "user": caseID, "evaluation_case_id": caseID,
	})
	if err != nil {
		return nil, &Broken{Reason: "the question cannot be written as JSON", Final: true}
	}
	wait := a.opts.Backoff
	for attempt := 1; ; attempt++ {
		got, err := a.try(ctx, caseID, body)
		if err == nil {
			got.Attempts = attempt
			return got, nil
		}
		var broken *Broken
		if ctx.Err() != nil || !errors.As(err, &broken) || !broken.retry || attempt == a.opts.Attempts {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
			wait *= 2
		}
	}
}

func (a *Agent) try(ctx context.Context, caseID string, body []byte) (*Observation, error) {
	limit := fmt.Errorf("no whole answer within %s", a.opts.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, a.opts.Timeout, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.workflow, bytes.NewReader(body))
	if err != nil {
		return nil, &Broken{Reason: "the address cannot be asked", Final: true}
	}
	a.identify(req)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("X-Evaluation-Case-Id", caseID)
	r := &reader{tools: a.opts.Tools, started: time.Now(), now: time.Now}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, a.unreached(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, refused(resp)
	}
	bounded := &io.LimitedReader{R: resp.Body, N: maxStream}
	if err := r.read(bounded); err != nil {
		return nil, a.malformed(ctx, err)
	}
	if bounded.N <= 0 {
		return nil, &Broken{Reason: fmt.Sprintf("malformed stream: more than %d bytes", maxStream)}
	}
	r.got.Latency = time.Since(r.started)
	return &r.got, nil
}

// identify adds what every request of an evaluator carries: the key and one
// identity. There is no x-request-id, so no approval can ever be asked for.
func (a *Agent) identify(req *http.Request) {
	req.Header.Set("Authorization", "Bearer "+a.key)
	req.Header.Set("X-Authenticated-User-Id", a.opts.Principal)
	req.Header.Set("User-Agent", "weir-compare")
}

// unreached is the error of a request that got no answer.
func (a *Agent) unreached(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return a.late(ctx)
	}
	return &Broken{Reason: a.conceal("the agent cannot be reached: " + cause(err)), retry: true}
}

func (a *Agent) malformed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return a.late(ctx)
	}
	reason := err.Error()
	if errors.Is(err, io.ErrUnexpectedEOF) {
		reason = "malformed stream: the connection ended inside it"
	}
	return &Broken{Reason: a.conceal(reason)}
}

// late tells our own time-out from a caller that has left.
func (a *Agent) late(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return &Broken{Reason: err.Error()}
	}
	return context.Canceled
}

// conceal takes the key out of a text that is shown.
func (a *Agent) conceal(text string) string { return strings.ReplaceAll(text, a.key, "[key]") }

// cause is an error without the address around it, which the report has.
func cause(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}

// refused is an answer that is no stream. A body is not shown: whose it is and
// what it holds is not known.
func refused(resp *http.Response) error {
	b := &Broken{Reason: fmt.Sprintf("the agent answered %d in place of a stream", resp.StatusCode)}
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		b.Reason, b.Final = fmt.Sprintf("the agent answered %d: it refuses the key or the identity", resp.StatusCode), true
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusMethodNotAllowed:
		b.Reason, b.Final = fmt.Sprintf("the agent answered %d: it does not serve %s", resp.StatusCode, resp.Request.URL.Path), true
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		b.retry = true
	}
	return b
}

// Version is what an agent says of itself; nil members were not said.
type Version map[string]any

// Text is a member that is a text, or "".
func (v Version) Text(name string) string {
	text, _ := v[name].(string)
	return text
}

// Version asks the agent's /version. The error says why there is none, which
// is no reason not to compare.
func (a *Agent) Version(ctx context.Context) (Version, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.opts.Version, fmt.Errorf("no answer within %s", a.opts.Version))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.version, nil)
	if err != nil {
		return nil, err
	}
	a.identify(req)
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, a.unreached(ctx, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxVersion))
	if err != nil {
		return nil, a.malformed(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/version answered %d", resp.StatusCode)
	}
	object, _ := decode(string(data)).(map[string]any)
	if object == nil {
		return nil, errors.New("/version did not answer with a JSON object")
	}
	return object, nil
}
