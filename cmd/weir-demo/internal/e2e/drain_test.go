package e2e

import (
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// H6: at SIGTERM nothing new is taken, an open stream ends with one error block
// and WORKFLOW_END, and the process ends in time with code 0.
func TestDrainEndsStreams(t *testing.T) {
	t.Parallel()
	upstream := &swap{}
	env, _ := neighbours(t, setup{model: upstream})
	c := launch(t, env, nil, "serve", "--config", deployment(t, nil, nil))
	w := &world{addr: c.address(t)}
	w.url = "http://" + w.addr
	if text := get(t, w.url+"/health/ready"); text != "ready" {
		t.Errorf("ready: %q", text)
	}
	hung := make(chan struct{}, 3)
	upstream.set(&model{agent: func(c *chat, _ int) {
		c.text("Half of an answer. ")
		hung <- struct{}{}
		<-c.r.Context().Done()
	}})
	stream := w.open(t.Context(), t, user("Hello"))
	deaf := w.dial(t) // never reads
	deaf.send(t, w.raw(t, "Hello"))
	gone := w.dial(t) // in the middle of a request
	gone.send(t, "POST /v1/workflow/full HTTP/1.1\r\nHost: a\r\nContent-Le")
	idle := w.dial(t) // asks nothing
	<-hung
	<-hung
	interrupt(t, c)
	began := time.Now()
	eventually(t, func() bool {
		conn, err := net.Dial("tcp", w.addr)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	raw, err := io.ReadAll(stream.Body)
	if err != nil {
		t.Fatalf("the body does not end cleanly: %v\n%s", err, raw)
	}
	s := read(t, stream.Header, raw)
	if n := len(s.order); s.order[n-2] != runFailed {
		t.Errorf("%q", s.order)
	}
	code := c.wait(t, hang)
	if took := time.Since(began); code != 0 || took > 20*time.Second { // who never reads may stall for 30 s
		t.Errorf("code %d after %s:\n%s", code, took, c.stderr)
	}
	if _, err := idle.r.ReadByte(); err == nil {
		t.Error("the idle connection got something")
	}
	noSecrets(t, "stderr", c.stderr.String())
}

// A run that ends within the drain time ends as if nothing had happened.
func TestDrainLetsRunsEnd(t *testing.T) {
	t.Parallel()
	hung, release := make(chan struct{}), make(chan struct{})
	env, _ := neighbours(t, setup{model: &model{agent: func(c *chat, _ int) {
		c.text("The whole ")
		close(hung)
		<-release
		c.text("answer.").end("stop")
	}}})
	c := launch(t, env, nil, "serve", "--config", deployment(t, func(c string) string {
		return replace(t, c, "drain = \"300ms\"", "drain = \"20s\"")
	}, nil))
	w := &world{url: "http://" + c.address(t)}
	stream := w.open(t.Context(), t, user("Hello"))
	<-hung
	interrupt(t, c)
	eventually(t, func() bool { return strings.Contains(c.stderr.String(), "msg=draining open_streams=1") })
	close(release)
	raw, err := io.ReadAll(stream.Body)
	if err != nil {
		t.Fatal(err)
	}
	if s := read(t, stream.Header, raw); s.text() != "The whole answer." || s.page.Err != "" {
		t.Errorf("%q", s.order)
	}
	if code := c.wait(t, hang); code != 0 {
		t.Errorf("code %d:\n%s", code, c.stderr)
	}
}

// A second signal does not wait for anybody.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	hung := make(chan struct{})
	env, _ := neighbours(t, setup{model: &model{agent: func(c *chat, _ int) { close(hung); <-c.r.Context().Done() }}})
	c := launch(t, env, nil, "serve", "--config", deployment(t, func(c string) string {
		return replace(t, c, "drain = \"300ms\"", "drain = \"20s\"")
	}, nil))
	w := &world{url: "http://" + c.address(t)}
	w.open(t.Context(), t, user("Hello"))
	<-hung
	interrupt(t, c)
	eventually(t, func() bool { return strings.Contains(c.stderr.String(), "msg=draining") })
	// The line is written while the program gives the signal back to the system.
	eventually(t, func() bool {
		select {
		case <-c.ended:
			return true
		case <-time.After(50 * time.Millisecond):
			_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
			return false
		}
	})
	if c.code == 0 {
		t.Error("an impatient operator reads success")
	}
}

func get(t testing.TB, url string) string {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	return drain(t, resp)
}
