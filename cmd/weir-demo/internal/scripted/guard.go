package scripted

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// serveGuard answers the classifier's question in one piece.
func (s *Server) serveGuard(w http.ResponseWriter, id int, req *chatRequest) {
	verdict := "No"
	if suspicious(s.question(req.Messages[len(req.Messages)-1].Content)) {
		verdict = "Yes"
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": fmt.Sprintf("chatcmpl-%d", id), "object": "chat.completion", "model": req.Model,
		"choices": []any{map[string]any{"index": 0, "finish_reason": "stop",
			"message": map[string]string{"role": "assistant", "content": verdict}}},
		"usage": map[string]int{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
	})
}

// question takes the message out of the filled template.
func (s *Server) question(prompt string) string {
	before, after, ok := strings.Cut(s.opts.GuardTemplate, "{{ user_input }}")
	if !ok {
		return prompt
	}
	before, after = strings.TrimSpace(before), strings.TrimSpace(after)
	prompt = strings.TrimSpace(prompt)
	if strings.HasPrefix(prompt, before) && strings.HasSuffix(prompt, after) && len(prompt) >= len(before)+len(after) {
		return prompt[len(before) : len(prompt)-len(after)]
	}
	return prompt
}

// suspicious is a small stand-in for a classifier's judgement.
func suspicious(text string) bool {
	for _, expr := range []string{
		`(?is)\b(ignore|override|disregard|bypass|forget)\b.{0,120}\b(instructions?|prompt|rules?|policy)\b`,
		`(?is)\b(reveal|show|print|repeat|dump)\b.{0,120}\b(system prompt|hidden|api[ _-]?key|password|credentials?)\b`,
		`(?is)\b(you are now|pretend to be|maintenance mode)\b`,
	} {
		if regexp.MustCompile(expr).MatchString(text) {
			return true
		}
	}
	return false
}
