package agent_test

import (
	"reflect"
	"strings"
	"testing"

	"weir/cmd/weir/internal/agentv/agent"
)

func TestParseAddress(t *testing.T) {
	socket := func(network, target string) agent.Address {
		return agent.Address{Protocol: agent.Socket, Network: network, Target: target}
	}
	local := func(words ...string) agent.Address { return agent.Address{Protocol: agent.Local, Command: words} }
	for _, tt := range []struct {
		text, protocol string
		want           agent.Address
		shown          string
	}{
		{"http://127.0.0.1:5001/execute_task", "", agent.Address{Protocol: agent.HTTP, URL: "http://127.0.0.1:5001/execute_task"}, "http://127.0.0.1:5001/execute_task"},
		{"https://user:secret@host/x?key=secret#f", "http", agent.Address{Protocol: agent.HTTP, URL: "https://user:secret@host/x?key=secret#f"}, "https://host/x"},
		{"http://host/x", "sse", agent.Address{Protocol: agent.SSE, URL: "http://host/x"}, "http://host/x"},
		{"tcp:localhost:1", "", socket("tcp", "localhost:1"), "tcp:localhost:1"},
		{"tcp://localhost:1", "", socket("tcp", "localhost:1"), "tcp:localhost:1"},
		{"tcp:[::1]:9", "", socket("tcp", "[::1]:9"), "tcp:[::1]:9"},
		{"unix:/a/b", "", socket("unix", "/a/b"), "unix:/a/b"},
		{"unix:///a/b", "", socket("unix", "/a/b"), "unix:/a/b"},
		{"unix:a.sock", "", socket("unix", "a.sock"), "unix:a.sock"},
		{"socket://localhost:1", "", socket("tcp", "localhost:1"), "tcp:localhost:1"},
		{"socket:///a/b", "", socket("unix", "/a/b"), "unix:/a/b"},
		{"socket://unix:/a/b", "", socket("unix", "/a/b"), "unix:/a/b"},
		{"socket://tcp:localhost:1", "", socket("tcp", "localhost:1"), "tcp:localhost:1"},
		{"localhost:1", "socket", socket("tcp", "localhost:1"), "tcp:localhost:1"},
		{"python3 agent.py --x", "", local("python3", "agent.py", "--x"), "python3 agent.py …"},
		{"local://python3 agent.py", "", local("python3", "agent.py"), "python3 agent.py"},
		{"http://x", "local", local("http://x"), "http://x"},
		{`a 'b c' "d \"e\" \n" f\ g '' x"y"'z'`, "", local("a", "b c", `d "e" \n`, "f g", "", "xyz"), `a b c d "e" \n f g  xyz`},
	} {
		got, err := agent.ParseAddress(tt.text, tt.protocol)
		if err != nil || !reflect.DeepEqual(got, tt.want) || got.String() != tt.shown {
			t.Errorf("ParseAddress(%q, %q) = %+v, %v, shown %q, want %+v, %q", tt.text, tt.protocol, got, err, got, tt.want, tt.shown)
		}
	}
	for _, tt := range []struct{ text, protocol, want string }{
		{"", "", "expected a URL"},
		{"localhost:5001", "", "did you mean tcp:localhost:5001?"},
		{"http://", "", "expected a URL with a host"},
		{"tcp:localhost", "", "expected tcp:HOST:PORT"},
		{"unix:", "", "expected unix:PATH"},
		{"local://", "", "expected a command"},
		{"a 'b", "", "quotes are closed"},
		{`a \`, "", "quotes are closed"},
		{"tcp:localhost:1", "http", "expected a URL for the protocol http"},
		{"http://x/", "ag2", `expected the protocol http, sse, local or socket, got "ag2"`},
	} {
		if got, err := agent.ParseAddress(tt.text, tt.protocol); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ParseAddress(%q, %q) = %+v, %v, want %s", tt.text, tt.protocol, got, err, tt.want)
		}
	}
}
