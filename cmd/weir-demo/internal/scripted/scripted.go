// Package scripted is the demo's language model: an OpenAI-compatible endpoint
// that is reached over HTTP exactly as a real one, streams its replies in small
// pieces and makes genuine tool calls. It understands a handful of questions
// about tickets and answers them from the tool results in the conversation;
// no ticket's text is known to it.
package scripted

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options configures a [Server]; its zero value works.
type Options struct {
	// GuardTemplate is the prompt of the classifier with {{ user_input }} in
	// it, so that the message is told from the instructions around it. Empty:
	// the whole prompt is the message.
	GuardTemplate string
	// Pace lies between two pieces of a streamed reply. Default: none.
	Pace time.Duration
}

// keptRequests bounds what Requests remembers.
const keptRequests = 256

const maxBody = 8 << 20

// Server is the model as an http.Handler for POST /v1/chat/completions.
type Server struct {
	opts Options

	mu       sync.Mutex
	requests []Request
	count    int
	streamed int
}

// Request is one call as it came.
type Request struct {
	Authorization string
	Body          []byte
	Stream        bool
}

// New returns a model.
func New(opts Options) *Server { return &Server{opts: opts} }

// Requests returns the newest requests, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// AgentCalls counts the streamed requests, which are those of the agent itself.
func (s *Server) AgentCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streamed
}

// chatRequest is the part of a Chat Completions request that matters here.
type chatRequest struct {
	Model         string    `json:"model"`
	Messages      []message `json:"messages"`
	Stream        bool      `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

type message struct {
	Role       string     `json:"role"`
	Content    string     `json:"content"` // null becomes ""
	ToolCallID string     `json:"tool_call_id"`
	ToolCalls  []toolCall `json:"tool_calls"`
}

type toolCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		refuse(w, http.StatusNotFound, "unknown route")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "the request is too large")
		return
	}
	var req chatRequest
	if err := json.Unmarshal(body, &req); err != nil || len(req.Messages) == 0 {
		refuse(w, http.StatusBadRequest, "expected a chat completion request with messages")
		return
	}
	id := s.record(Request{r.Header.Get("Authorization"), body, req.Stream})
	if !req.Stream {
		s.serveGuard(w, id, &req)
		return
	}
	st := &stream{w: w, rc: http.NewResponseController(w), done: r.Context().Done(), pace: s.opts.Pace, id: id, model: req.Model}
	st.send(decide(&req), req.StreamOptions.IncludeUsage)
}

func (s *Server) record(r Request) (number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count++; len(s.requests) == keptRequests {
		s.requests = s.requests[1:]
	}
	if r.Stream {
		s.streamed++
	}
	s.requests = append(s.requests, r)
	return s.count
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": text}})
}
