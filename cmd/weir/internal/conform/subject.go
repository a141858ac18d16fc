package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

// user is who we say that we are.
const user = "weir-conform"

// Bounds of what is read of an answer.
const (
	maxBody   = 1 << 20
	maxStream = 32 << 20
)

// Paths.
const (
	pathHealth   = "/health"
	pathManifest = "/.well-known/agent.json"
	pathWorkflow = "/v1/workflow/full"
	pathVersion  = "/version"
	pathTask     = "/execute_task"
)

// subject is the agent and what is known of it already. One goroutine uses it.
type subject struct {
	Target
	opts   Options
	client *http.Client

	seen      []*answer // every answer, for what must stand in none
	served    *answer   // of the workflow's route
	streams   map[string]*transcript
	approvals *bool
	first     *reply // of the AgentV contract
	folder    *folder
}

// header is one header line; they are a list because some stand twice.
type header struct{ name, value string }

// answer is a response, or why there is none.
type answer struct {
	request string // method and path
	status  int
	header  http.Header
	body    []byte
	length  int64
	took    time.Duration
	err     error
}

func (a *answer) String() string {
	if a.err != nil {
		return fmt.Sprintf("%s: no answer: %v", a.request, a.err)
	}
	return fmt.Sprintf("%s: %d %s", a.request, a.status, quote(a.body))
}

// quote shows the beginning of a foreign text.
func quote(text []byte) string {
	const most = 160
	if len(text) > most {
		return fmt.Sprintf("%q…", text[:most])
	}
	return fmt.Sprintf("%q", text)
}

// conceal takes the key out of a text.
func (s *subject) conceal(text string) string {
	if s.Key == "" {
		return text
	}
	return strings.ReplaceAll(text, s.Key, "[key]")
}

// do sends one request and reads the whole answer, as far as the bound goes.
func (s *subject) do(ctx context.Context, method, path string, headers []header, body []byte) *answer {
	return s.send(ctx, s.opts.Timeout, maxBody, method, path, headers, body)
}

func (s *subject) send(ctx context.Context, timeout time.Duration, most int64, method, path string, headers []header, body []byte) *answer {
	a := &answer{request: method + " " + path}
	s.seen = append(s.seen, a)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("nothing within %s", timeout))
	defer cancel()
	start := time.Now()
	defer func() {
		a.took = time.Since(start)
		if a.err != nil && ctx.Err() != nil {
			a.err = context.Cause(ctx)
		}
	}()
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		a.err = err
		return a
	}
	for _, h := range headers {
		req.Header.Add(h.name, h.value)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		a.err = errors.Unwrap(err) // the outer one says the address again
		if a.err == nil {
			a.err = err
		}
		return a
	}
	defer resp.Body.Close()
	a.status, a.header, a.length = resp.StatusCode, resp.Header, resp.ContentLength
	a.body, a.err = io.ReadAll(io.LimitReader(resp.Body, most+1))
	if int64(len(a.body)) > most {
		a.err = fmt.Errorf("more than %d bytes", most)
	}
	return a
}

// reach makes sure that there is somebody to look at, and that the key opens.
func (s *subject) reach(ctx context.Context) error {
	if s.URL == "" {
		return nil
	}
	if a := s.do(ctx, http.MethodGet, pathHealth, nil, nil); a.err != nil {
		return fmt.Errorf("the agent cannot be reached: %w", a.err)
	}
	if s.Key == "" || !s.wants(SpecService) && !s.wants(SpecTurn) {
		return nil
	}
	s.served = s.post(ctx, s.caller(), emptyRequest)
	if s.served.err != nil {
		return fmt.Errorf("the agent does not answer: %w", s.served.err)
	}
	if s.served.status == http.StatusUnauthorized {
		return errors.New("the agent refuses the key or the identity header, so nothing behind them can be looked at")
	}
	return nil
}

// emptyRequest is refused after authentication and before any model is asked.
var emptyRequest = []byte(`{"messages":[]}`)

// key is the header of the service key.
func (s *subject) key() header { return header{"Authorization", "Bearer " + s.Key} }

// caller are key and identity, and what is added.
func (s *subject) caller(more ...header) []header {
	return append([]header{s.key(), {"x-authenticated-user-id", user}}, more...)
}

// post asks the workflow's route.
func (s *subject) post(ctx context.Context, headers []header, body []byte) *answer {
	return s.do(ctx, http.MethodPost, pathWorkflow, headers, body)
}

// refusal is whether an answer is an error of that status and message.
func refusal(a *answer, status int, message string) finding {
	if a.err != nil || a.status != status {
		return fail("expected %d, got %s", status, a)
	}
	if got := errorText(a); got != message {
		return fail("expected the error %q, got %s", message, a)
	}
	return pass()
}

// errorText is the message of an error body, and "" if it is none.
func errorText(a *answer) string {
	var e map[string]any
	if json.Unmarshal(a.body, &e) != nil || len(e) != 1 {
		return ""
	}
	text, _ := e["error"].(string)
	return text
}

// status is whether an answer has that status.
func status(a *answer, want int) finding {
	if a.err != nil || a.status != want {
		return fail("expected %d, got %s", want, a)
	}
	return pass()
}

func isJSON(a *answer) bool {
	kind, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	return err == nil && (kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json"))
}

// object reads an answer that has to be a JSON object.
func object(a *answer) (map[string]any, finding) {
	var v map[string]any
	switch {
	case a.err != nil || a.status != http.StatusOK:
		return nil, fail("expected 200, got %s", a)
	case !isJSON(a):
		return nil, fail("expected JSON, got content-type %q", a.header.Get("Content-Type"))
	case json.Unmarshal(a.body, &v) != nil || v == nil:
		return nil, fail("expected a JSON object, got %s", a)
	}
	return v, pass()
}

// wire makes a check of an agent that is reached over HTTP.
func wire(check func(context.Context, *subject) finding) func(context.Context, *subject) finding {
	return func(ctx context.Context, s *subject) finding {
		if s.URL == "" {
			return skip("no agent was named with --url")
		}
		return check(ctx, s)
	}
}

// keyed makes a check that needs the service key.
func keyed(check func(context.Context, *subject) finding) func(context.Context, *subject) finding {
	return wire(func(ctx context.Context, s *subject) finding {
		if s.Key == "" {
			return skip("no service key was given")
		}
		return check(ctx, s)
	})
}

// service makes a check of the agent-service contract, where it is served.
func service(check func(context.Context, *subject) finding) func(context.Context, *subject) finding {
	return keyed(func(ctx context.Context, s *subject) finding {
		if !s.serves() {
			return skip("POST %s is not served", pathWorkflow)
		}
		return check(ctx, s)
	})
}

func (s *subject) serves() bool {
	return s.served.status != http.StatusNotFound && s.served.status != http.StatusMethodNotAllowed
}
