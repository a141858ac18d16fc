package model

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir/abi"
)

const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

// piped returns a client whose server is play, at the other end of a pipe, in
// the bubble's time.
func piped(t *testing.T, play func(conn net.Conn)) *Client {
	var servers sync.WaitGroup
	t.Cleanup(servers.Wait) // after the client's end
	return client(t, Options{
		Agent: Alias{BaseURL: "http://model.invalid"},
		dial: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			servers.Go(func() {
				defer far.Close()
				r := bufio.NewReader(far)
				if req, err := http.ReadRequest(r); err == nil {
					io.Copy(io.Discard, req.Body)
					play(far)
				}
			})
			return near, nil
		},
	})
}

// say sends a piece of a stream after a while.
func say(conn net.Conn, after time.Duration, text string) {
	time.Sleep(after)
	io.WriteString(conn, text)
}

// hang waits for the other end to close.
func hang(conn net.Conn) { io.Copy(io.Discard, conn) }

// DECISIONS 10: first token 60 s, between chunks 30 s.
func TestTimeouts(t *testing.T) {
	for name, c := range map[string]struct {
		play func(net.Conn)
		code string // "" for a reply
		took time.Duration
	}{
		"no head": {hang, abi.FailTimeout, 60 * time.Second},
		"no chunk": {func(conn net.Conn) {
			say(conn, 20*time.Second, head)
			hang(conn)
		}, abi.FailTimeout, 60 * time.Second},
		"only comments": {func(conn net.Conn) {
			say(conn, 0, head)
			for range 20 {
				say(conn, 10*time.Second, ": processing\n\n")
			}
		}, abi.FailTimeout, 60 * time.Second},
		"silence": {func(conn net.Conn) {
			say(conn, 50*time.Second, head+events(content("a")))
			hang(conn)
		}, abi.FailTimeout, 80 * time.Second},
		"slow but alive": {func(conn net.Conn) {
			say(conn, 59*time.Second, head)
			for range 10 {
				say(conn, 0, events(content("a")))
				time.Sleep(29 * time.Second)
			}
			say(conn, 0, events(finish("stop"), "[DONE]"))
		}, "", 59*time.Second + 290*time.Second},
		"open after the finish reason": {func(conn net.Conn) {
			say(conn, 0, head+events(content("a"), finish("stop")))
			hang(conn)
		}, "", lingerFinish},
		"open after [DONE]": {func(conn net.Conn) {
			say(conn, 0, head+events(content("a"), finish("stop"), "[DONE]"))
			hang(conn)
		}, "", lingerDone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := piped(t, c.play)
				began := time.Now()
				reply, _, err := collect(t.Context(), client, streamed())
				if c.code != "" {
					wantFailure(t, reply, err, c.code)
				} else if err != nil {
					t.Errorf("%v, want a reply", err)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
			})
		})
	}
}

// A client that reads slowly is not the provider's silence.
func TestSlowReceiverIsNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := piped(t, func(conn net.Conn) { say(conn, 0, head+events(content("a"), content("b"), finish("stop"), "[DONE]")) })
		reply, err := c.Complete(t.Context(), streamed(), func(string) { time.Sleep(5 * time.Minute) })
		if err != nil || reply.Text != "ab" {
			t.Errorf("reply %+v, %v", reply, err)
		}
	})
}

// DECISIONS 10: a guard's model call has a deadline of its own.
func TestCallersDeadlineIsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := piped(t, hang)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		reply, _, err := collect(ctx, c, streamed())
		wantFailure(t, reply, err, abi.FailTimeout)
	})
}

// DECISIONS 10: connect 5 s, twice.
func TestConnectTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, Options{
			Agent: Alias{BaseURL: "http://model.invalid"},
			dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})
		began := time.Now()
		reply, _, err := collect(t.Context(), c, streamed())
		wantFailure(t, reply, err, abi.FailTimeout)
		if took, want := time.Since(began), 10*time.Second+retryPause; took != want {
			t.Errorf("took %v, want %v", took, want)
		}
		if !strings.Contains(err.Error(), "no connection within 5s") {
			t.Errorf("text %q does not name the limit", err)
		}
	})
}
