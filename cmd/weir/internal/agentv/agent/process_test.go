package agent_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"weir/cmd/weir/internal/agentv/agent"
	"weir/host/fault"
)

func open(t *testing.T, address string, opts agent.Options) agent.Session {
	t.Helper()
	a, err := agent.ParseAddress(address, "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := agent.Open(a, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func command(t *testing.T, how string, opts agent.Options) agent.Session {
	t.Helper()
	t.Setenv(behaviour, how)
	return open(t, "'"+os.Args[0]+"'", opts)
}

// agentv.md 1.6: a process for each request, no line's end unless asked for.
func TestProcessPerTurn(t *testing.T) {
	for _, newline := range []bool{false, true} {
		s := command(t, "echo", agent.Options{Newline: newline})
		want := `{"got":"{\"a\":1}"}`
		if newline {
			want = `{"got":"{\"a\":1}\n"}`
		}
		for range 2 {
			answer, err := s.Ask(t.Context(), []byte(`{"a":1}`), "")
			if err != nil || strings.TrimSpace(string(answer.Body)) != want || answer.Stderr != "log line of echo\n" {
				t.Errorf("newline %v: %q, %v, want %s", newline, answer, err, want)
			}
		}
	}
}

// The document's form: one process, many lines.
func TestProcessPersistent(t *testing.T) {
	s := command(t, "lines", agent.Options{Persistent: true})
	for _, want := range []string{`{"n":1,"got":"{}"}`, `{"n":2,"got":"{}"}`} {
		answer, err := s.Ask(t.Context(), []byte(`{}`), "")
		if err != nil || string(answer.Body) != want {
			t.Errorf("%q, %v, want %s", answer.Body, err, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := s.Ask(t.Context(), []byte(`{}`), ""); fault.Of(err) != fault.Gone {
		t.Errorf("after Close: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
}

// What a command does wrong is an error with its code, and nothing of it lives on.
func TestProcessFails(t *testing.T) {
	for _, tt := range []struct {
		how        string
		persistent bool
		code, text string
	}{
		{"exit", false, agent.CodeNoAnswer, `exit status 3 (stderr: "log line of exit")`},
		{"silent", false, agent.CodeNoAnswer, "the command wrote none"},
		{"silent", true, agent.CodeNoAnswer, "the command ended"},
		{"endless", false, agent.CodeTooLarge, "at most 5000 bytes"},
		{"endless-line", true, agent.CodeTooLarge, "at most 5000 bytes"},
		{"hang", false, agent.CodeTimeout, "within 1s"},
		{"hang", true, agent.CodeTimeout, "within 1s"},
	} {
		timeout := time.Minute
		if tt.code == agent.CodeTimeout {
			timeout = time.Second
		}
		s := command(t, tt.how, agent.Options{Persistent: tt.persistent, MaxReply: 5000, Timeout: timeout})
		begun := time.Now()
		answer, err := s.Ask(t.Context(), []byte(`{}`), "")
		if fault.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.text) || time.Since(begun) > 40*time.Second {
			t.Errorf("%s, persistent %v: %v after %v, want %s %s", tt.how, tt.persistent, err, time.Since(begun), tt.code, tt.text)
		}
		if tt.how != "hang" && !strings.HasPrefix(answer.Stderr, "log line of") {
			t.Errorf("%s: stderr %q", tt.how, answer.Stderr)
		}
		if tt.persistent {
			if _, again := s.Ask(t.Context(), []byte(`{}`), ""); again == nil {
				t.Errorf("%s: asked again after a failure", tt.how)
			}
		}
	}
	s := open(t, "no-such-command-anywhere", agent.Options{})
	if _, err := s.Ask(t.Context(), []byte(`{}`), ""); fault.CodeOf(err) != agent.CodeConnect {
		t.Errorf("a missing command: %v", err)
	}
}

// A child that holds the streams open ends with its parent.
func TestProcessLeavesChild(t *testing.T) {
	s := command(t, "hang-child", agent.Options{Timeout: time.Minute})
	begun := time.Now()
	_, err := s.Ask(t.Context(), []byte(`{}`), "")
	if fault.CodeOf(err) != agent.CodeNoAnswer || !strings.Contains(err.Error(), "left its output open") || time.Since(begun) > 40*time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
}

// Of stderr the beginning is kept, and the rest counted.
func TestStderrBounded(t *testing.T) {
	s := command(t, "chatter", agent.Options{MaxStderr: 1000})
	answer, err := s.Ask(t.Context(), []byte(`{}`), "")
	if err != nil || len(answer.Stderr) > 1100 || !strings.HasSuffix(answer.Stderr, "\n[199020 more bytes dropped]") {
		t.Errorf("%v, %d bytes ending in %.60q", err, len(answer.Stderr), answer.Stderr[max(0, len(answer.Stderr)-60):])
	}
}

// Whoever cancels is not told of a time-out.
func TestCancelled(t *testing.T) {
	s := command(t, "hang", agent.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := s.Ask(ctx, []byte(`{}`), ""); fault.CodeOf(err) != agent.CodeCancelled {
		t.Errorf("%v", err)
	}
}
