package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// model is a Chat Completions endpoint that says what a test wants.
type model struct {
	// agent answers the agent's n-th request, from 0.
	agent func(c *chat, n int)
	// guard answers the classifier; nil says No.
	guard func(w http.ResponseWriter, r *http.Request)

	agentCalls, guardCalls atomic.Int64
	last                   atomic.Pointer[[]byte] // the agent's newest request
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var req struct {
		Stream bool `json:"stream"`
	}
	_ = json.Unmarshal(body, &req)
	if req.Stream {
		m.last.Store(&body)
		m.agent(&chat{w: w, r: r, body: body}, int(m.agentCalls.Add(1))-1)
		return
	}
	m.guardCalls.Add(1)
	if m.guard != nil {
		m.guard(w, r)
		return
	}
	whole(w, "No")
}

// whole answers in one piece.
func whole(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"index": 0, "finish_reason": "stop",
		"message": map[string]string{"role": "assistant", "content": text}}}})
}

// chat is one streamed reply in the making.
type chat struct {
	w    http.ResponseWriter
	r    *http.Request
	body []byte
	open bool
}

func (c *chat) raw(text string) *chat {
	if !c.open {
		c.open = true
		c.w.Header().Set("Content-Type", "text/event-stream")
	}
	_, _ = io.WriteString(c.w, text)
	_ = http.NewResponseController(c.w).Flush()
	return c
}

func (c *chat) delta(delta any, finish any) *chat {
	data, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
	return c.raw("data: " + string(data) + "\n\n")
}

func (c *chat) text(text string) *chat { return c.delta(map[string]any{"content": text}, nil) }

func (c *chat) call(index int, name, arguments string) *chat {
	return c.delta(map[string]any{"tool_calls": []any{map[string]any{"index": index, "id": fmt.Sprintf("call_%d", index),
		"type": "function", "function": map[string]string{"name": name, "arguments": arguments}}}}, nil)
}

func (c *chat) end(finish string) { c.delta(map[string]any{}, finish).raw("data: [DONE]\n\n") }

// says is a model that answers every question with these pieces.
func says(pieces ...string) *model {
	return &model{agent: func(c *chat, _ int) {
		for _, p := range pieces {
			c.text(p)
		}
		c.end("stop")
	}}
}
