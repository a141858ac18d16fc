package scripted

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// stream writes one reply as Chat Completions deltas.
type stream struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	done  <-chan struct{} // the caller has left
	pace  time.Duration
	id    int
	model string
	err   error // the first failed write; nothing follows it
}

// Sizes of the pieces, in characters: small, so that whoever reads has to put
// words, secrets and JSON together again.
const (
	textPiece     = 4
	argumentPiece = 5
)

func (s *stream) send(r reply, usage bool) {
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.w.Header().Set("Cache-Control", "no-cache")
	s.delta(map[string]any{"role": "assistant", "content": ""}, nil)
	for _, piece := range pieces(r.text, textPiece) {
		s.delta(map[string]any{"content": piece}, nil)
	}
	for i, c := range r.calls {
		s.call(i, c)
	}
	finish := "stop"
	if len(r.calls) > 0 {
		finish = "tool_calls"
	}
	s.delta(map[string]any{}, finish)
	if usage {
		s.chunk(map[string]any{"choices": []any{}, "usage": map[string]int{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
	}
	s.write("[DONE]")
}

// call sends the name first and then the arguments in fragments.
func (s *stream) call(index int, c call) {
	s.toolDelta(map[string]any{"index": index, "id": fmt.Sprintf("call_%d_%d", s.id, index), "type": "function",
		"function": map[string]string{"name": c.name, "arguments": ""}})
	for _, piece := range pieces(c.arguments, argumentPiece) {
		s.toolDelta(map[string]any{"index": index, "function": map[string]string{"arguments": piece}})
	}
}

func (s *stream) toolDelta(call map[string]any) {
	s.delta(map[string]any{"tool_calls": []any{call}}, nil)
}

func (s *stream) delta(delta map[string]any, finish any) {
	s.chunk(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
}

func (s *stream) chunk(chunk map[string]any) {
	chunk["id"] = fmt.Sprintf("chatcmpl-%d", s.id)
	chunk["object"], chunk["model"], chunk["created"] = "chat.completion.chunk", s.model, time.Now().Unix()
	data, err := json.Marshal(chunk)
	if err != nil {
		panic("scripted: " + err.Error()) // strings and numbers always marshal
	}
	s.write(string(data))
}

func (s *stream) write(data string) {
	if s.err != nil {
		return
	}
	if _, s.err = fmt.Fprintf(s.w, "data: %s\n\n", data); s.err == nil {
		s.err = s.rc.Flush()
	}
	if s.pace <= 0 || s.err != nil {
		return
	}
	timer := time.NewTimer(s.pace)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.done:
		s.err = http.ErrAbortHandler
	}
}

// pieces cuts text into parts of n characters.
func pieces(text string, n int) []string {
	var parts []string
	for runes := []rune(text); len(runes) > 0; {
		size := min(n, len(runes))
		parts = append(parts, string(runes[:size]))
		runes = runes[size:]
	}
	return parts
}
