package agent_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/cmd/weir/internal/agentv/agent"
	"weir/host/fault"
)

// listen serves each connection with serve and returns the address.
func listen(t *testing.T, network string, serve func(n int, c net.Conn)) string {
	t.Helper()
	target := "127.0.0.1:0"
	if network == "unix" {
		target = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, target)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				serve(n, c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return network + ":" + l.Addr().String()
}

// agentv.md 1.7: a connection for each turn, or one for all of them.
func TestSocket(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		for _, persistent := range []bool{false, true} {
			address := listen(t, network, func(n int, c net.Conn) {
				in := bufio.NewScanner(c)
				for line := 1; in.Scan(); line++ {
					fmt.Fprintf(c, "{\"connection\":%d,\"line\":%d,\"got\":%q}\nanother line\n", n, line, in.Text())
					if !persistent {
						return
					}
				}
			})
			s := open(t, address, agent.Options{Persistent: persistent})
			first, err := s.Ask(t.Context(), []byte(`{"a":1}`), "")
			if err != nil || string(first.Body) != `{"connection":1,"line":1,"got":"{\"a\":1}"}` {
				t.Errorf("%s persistent %v: %s, %v", network, persistent, first.Body, err)
			}
			second, err := s.Ask(t.Context(), []byte(`{}`), "")
			want := `{"connection":2,"line":1,"got":"{}"}`
			if persistent {
				want = "another line" // what an agent says unasked is the next answer
			}
			if err != nil || string(second.Body) != want {
				t.Errorf("%s persistent %v, again: %s, %v, want %s", network, persistent, second.Body, err, want)
			}
			_ = s.Close()
		}
	}
}

func TestSocketAnswers(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	for _, tt := range []struct {
		name  string
		serve func(io.ReadWriter)
		body  string
		code  string
	}{
		{"line", func(c io.ReadWriter) { fmt.Fprint(c, "{}\n") }, `{}`, ""},
		{"no line's end", func(c io.ReadWriter) { fmt.Fprint(c, "{}") }, `{}`, ""},
		{"the largest", func(c io.ReadWriter) { fmt.Fprint(c, strings.Repeat("x", 65535)+"\n") }, strings.Repeat("x", 65535), ""},
		{"too large", func(c io.ReadWriter) { fmt.Fprint(c, strings.Repeat("x", 65536)+"\n") }, "", agent.CodeTooLarge},
		{"without end", func(c io.ReadWriter) {
			for {
				if _, err := fmt.Fprint(c, strings.Repeat("x", 1000)); err != nil {
					return
				}
			}
		}, "", agent.CodeTooLarge},
		{"blank", func(c io.ReadWriter) { fmt.Fprint(c, "\r\n") }, "", agent.CodeNoAnswer},
		{"closed", func(io.ReadWriter) {}, "", agent.CodeNoAnswer},
		{"silent", func(io.ReadWriter) { <-release }, "", agent.CodeTimeout},
	} {
		address := listen(t, "tcp", func(_ int, c net.Conn) {
			_, _ = bufio.NewReader(c).ReadString('\n')
			tt.serve(c)
		})
		timeout := time.Minute
		if tt.code == agent.CodeTimeout {
			timeout = time.Second
		}
		answer, err := open(t, address, agent.Options{Timeout: timeout}).Ask(t.Context(), []byte(`{}`), "")
		if string(answer.Body) != tt.body || fault.CodeOf(err) != tt.code || (err == nil) != (tt.code == "") {
			t.Errorf("%s: %.80q, %v, want %.80q, %s", tt.name, answer.Body, err, tt.body, tt.code)
		}
	}
	nobody := "unix:" + filepath.Join(t.TempDir(), "s")
	if _, err := open(t, nobody, agent.Options{}).Ask(t.Context(), []byte(`{}`), ""); fault.CodeOf(err) != agent.CodeConnect {
		t.Errorf("nobody listens: %v", err)
	}
}
