package e2e

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// S8: no tool starts, and no model of the agent's, before each guardrail that
// may block has decided: the classifier, however long it thinks, and the output
// guards about what the model said before it called the tool.
func TestToolsWaitForGuards(t *testing.T) {
	own := newDesk(t)
	var calls atomic.Int64
	desk := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"tools/call"`)) {
			calls.Add(1)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		own.ServeHTTP(w, r)
	})
	// The host's session may be with the desk of a test before: the first call
	// finds it expired and is repeated, which is not what is counted here.
	shared(t, nil, desk).ask(t, user("Show me my open tickets."))
	for name, tc := range map[string]struct {
		vote, text string
		calls      int64
	}{
		"allowed, the control":     {"No", "Let me look. ", 1},
		"refused":                  {"Yes", "Let me look. ", 0},
		"cut before the call":      {"No", "Use password=hunter2hunter2 and ", 0},
		"cut at the text's end":    {"No", "Use password=hunter2hunter2", 0},
		"undecided, then harmless": {"No", "The pass", 1},
	} {
		t.Run(name, func(t *testing.T) {
			calls.Store(0)
			m := &model{}
			early := false
			m.guard = func(w http.ResponseWriter, _ *http.Request) {
				<-time.After(100 * time.Millisecond) // for whoever would not wait
				early = calls.Load()+m.agentCalls.Load() > 0
				whole(w, tc.vote)
			}
			m.agent = func(c *chat, n int) {
				if n == 0 {
					c.text(tc.text).call(0, "get_ticket", `{"ticket_id":"TKT-1001"}`).end("tool_calls")
					return
				}
				c.text("word is yours.").end("stop")
			}
			s := shared(t, m, desk).ask(t, user("How are you?"))
			if early {
				t.Error("something started before the classifier had answered")
			}
			if n := calls.Load(); n != tc.calls || int64(s.count("TOOL_START")) != tc.calls {
				t.Errorf("%d calls reached the server, want %d: %q", n, tc.calls, s.order)
			}
		})
	}
}
