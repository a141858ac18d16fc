// Package gateway plays the gateway's part in the demo: it sends conversations
// to an agent over the agent-service contract, prints what comes back while it
// streams, and holds it against what must have happened. It reads the stream
// as section 10.2 of the contract says its consumers do.
package gateway

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
	"time"

	"github.com/google/uuid"
)

// Options configures a [Gateway]. Address and Key are required.
type Options struct {
	Address string // host:port of the agent
	Key     string // the service key
	UserID  string // who asks. Default "demo-user"
	Out     io.Writer
	Colour  bool
	// Timeout bounds one turn. Default 60 s.
	Timeout time.Duration
	// ModelCalls counts the agent's calls of its model so far. Nil: the
	// expectations about them are not checked.
	ModelCalls func() int
}

// Gateway talks to one agent.
type Gateway struct {
	opts   Options
	client *http.Client
	print  *printer
}

// stepTypes is what a gateway asks for.
const stepTypes = "TOOL_START,TOOL_END,FUNCTION_START,FUNCTION_END"

// New returns a gateway; Close releases its connections.
func New(opts Options) *Gateway {
	if opts.UserID == "" {
		opts.UserID = "demo-user"
	}
	if opts.Timeout == 0 {
		opts.Timeout = 60 * time.Second
	}
	if opts.Out == nil {
		opts.Out = io.Discard
	}
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext}
	return &Gateway{opts: opts, print: &printer{out: opts.Out, colour: opts.Colour}, client: &http.Client{
		Transport:     transport, // no proxy: the agent is a neighbour
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close releases the gateway's connections.
func (g *Gateway) Close() { g.client.CloseIdleConnections() }

// URL is the chat route as the gateway asks for it.
func (g *Gateway) URL() string {
	return "http://" + g.opts.Address + "/v1/workflow/full?filter_steps=" + url.QueryEscape(stepTypes)
}

// Play has every conversation and reports how many expectations failed.
func (g *Gateway) Play(ctx context.Context, conversations []Conversation) (failures int) {
	for i, c := range conversations {
		g.print.title(fmt.Sprintf("%d of %d  %s", i+1, len(conversations), c.Title))
		failures += g.converse(ctx, c)
		if ctx.Err() != nil {
			return failures + 1
		}
	}
	return failures
}

func (g *Gateway) converse(ctx context.Context, c Conversation) (failures int) {
	var history []chatMessage
	for _, t := range c.Turns {
		history = append(history, chatMessage{"user", t.User})
		g.print.user(t.User)
		seen, err := g.turn(ctx, history, t.Answers)
		g.print.endAnswer()
		failed := g.judge(ctx, t, seen, err)
		for _, f := range failed {
			g.print.failure(f)
		}
		if len(failed) == 0 {
			g.print.success(t.Expect.Summary)
		}
		failures += len(failed)
		if seen != nil && seen.answer() != "" {
			history = append(history, chatMessage{"assistant", seen.answer()})
		}
	}
	return failures
}

// judge returns one line for everything that is not as it should be.
func (g *Gateway) judge(ctx context.Context, t Turn, seen *transcript, err error) []string {
	if err != nil {
		return []string{err.Error()}
	}
	failed := t.Expect.check(seen)
	if seen.prompts != len(t.Answers) {
		failed = append(failed, fmt.Sprintf("the agent asked a person %d times, expected %d", seen.prompts, len(t.Answers)))
	}
	if t.then != nil && len(failed) == 0 {
		if err := t.then(ctx, g, seen); err != nil {
			failed = append(failed, err.Error())
		}
	}
	return failed
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// turn sends one request and reads its stream to the end.
func (g *Gateway) turn(ctx context.Context, messages []chatMessage, answers []Answer) (*transcript, error) {
	ctx, cancel := context.WithTimeout(ctx, g.opts.Timeout)
	defer cancel()
	before := 0
	if g.opts.ModelCalls != nil {
		before = g.opts.ModelCalls()
	}
	resp, err := g.post(ctx, messages)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 2000)) // the status says enough
		return nil, fmt.Errorf("the agent answered %d: %s", resp.StatusCode, bytes.TrimSpace(text))
	}
	seen := &transcript{modelCalls: unknown, respond: g.answerer(ctx, answers)}
	if err := seen.read(resp.Body, g.print); err != nil {
		return seen, fmt.Errorf("the stream broke: %w", err)
	}
	if g.opts.ModelCalls != nil {
		seen.modelCalls = g.opts.ModelCalls() - before
	}
	return seen, nil
}

func (g *Gateway) post(ctx context.Context, messages []chatMessage) (*http.Response, error) {
	body, err := json.Marshal(map[string]any{"messages": messages})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range g.headers() {
		req.Header.Set(name, value)
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return nil, errors.New("the agent service is unavailable")
	}
	return resp, nil
}

// headers are those of 10.1.
func (g *Gateway) headers() map[string]string {
	return map[string]string{
		"Authorization":            "Bearer " + g.opts.Key,
		"Content-Type":             "application/json",
		"Accept":                   "text/event-stream",
		"x-request-id":             uuid.NewString(),
		"x-authenticated-user-id":  g.opts.UserID,
		"x-authenticated-username": "Demo User",
		"x-authenticated-roles":    "support",
		"x-authenticated-email":    "demo.user@example.com",
	}
}

// Curl is a command line that asks the agent a question and works as pasted
// into a shell.
func (g *Gateway) Curl(question string) string {
	body, _ := json.Marshal(map[string]any{"messages": []chatMessage{{"user", question}}}) // strings always marshal
	return "curl -N -X POST " + quote(g.URL()) + " \\\n" +
		"  -H " + quote("Authorization: Bearer "+g.opts.Key) + " \\\n" +
		"  -H " + quote("x-authenticated-user-id: "+g.opts.UserID) + " \\\n" +
		"  -H 'Content-Type: application/json' \\\n" +
		"  -d " + quote(string(body))
}
