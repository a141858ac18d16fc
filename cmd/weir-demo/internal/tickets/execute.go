package tickets

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"weir/cmd/weir-demo/internal/approval"
)

// Bounds of one execution.
const (
	// maxExecuteBody lies above the longest token that an agent can make: a
	// note and a rationale of 4,000 and 16,384 characters, each as an escape
	// of six bytes, in base64.
	maxExecuteBody = 256 << 10
	executeTimeout = 10 * time.Second
)

// serveExecute is POST /approvals/execute (4.5), which exists with a secret
// only. Only one request can bear a nonce's use, whatever is sent again.
func (s *Server) serveExecute(w http.ResponseWriter, r *http.Request) {
	if s.verifier == nil {
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	if !s.admits(w, r) {
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "expected POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxExecuteBody))
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			reply(w, http.StatusRequestEntityTooLarge, false, map[string]string{"error": "the approval request is too large"})
		}
		return // the caller has left
	}
	ctx, cancel := context.WithTimeout(r.Context(), executeTimeout)
	defer cancel()
	done, err := s.execute(ctx, body)
	s.answer(w, done, err)
}

func (s *Server) execute(ctx context.Context, body []byte) (*change, error) {
	req, err := approval.DecodeRequest(body)
	if err != nil {
		return nil, err
	}
	claims, err := s.verifier.Decode(req.Token)
	if err != nil {
		return nil, err
	}
	done, err := s.desk.execute(ctx, claims, req.RequestID)
	if err == nil && s.opts.Committed != nil {
		s.opts.Committed(req.Token, req.RequestID)
	}
	return done, err
}

// answer is the table of 4.5. The texts of refusals and failures are made for
// callers; what is behind a failure only the log learns.
func (s *Server) answer(w http.ResponseWriter, done *change, err error) {
	var (
		refused refusal
		token   approval.Refusal
		failed  = notApplied
	)
	switch {
	case err == nil:
		reply(w, http.StatusOK, true, done)
	case errors.As(err, &refused):
		reply(w, http.StatusOK, false, map[string]string{"refused": refused.Error()})
	case errors.As(err, &token):
		reply(w, http.StatusForbidden, false, map[string]string{"error": token.Error()})
	default:
		errors.As(err, &failed)
		s.opts.Log.Error("an approved change failed", "error", err)
		reply(w, http.StatusForbidden, false, map[string]string{"error": failed.Error()})
	}
}

func reply(w http.ResponseWriter, status int, ok bool, result any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(struct {
		OK     bool `json:"ok"`
		Result any  `json:"result"`
	}{ok, result}); err != nil {
		panic("tickets: " + err.Error()) // texts and booleans always marshal
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n"))) // the caller may have left
}
