package sandbox_test

import (
	"testing"

	"weir/cmd/weir/internal/agentv/sandbox"
	"weir/cmd/weir/internal/agentv/scenario"
)

const file = `{"aes_version":1.4,"metadata":{"id":"a","name":"A","compliance_level":"Gold"},
"tools":{"pay":{"output":{"status":"success","message":"paid"},"state_changes":[{"path":"account.balance","value":5},{"path":"log.0","value":"paid"}]},
 "say":{"output":"just text"},"look":{}},
"policies":{"pay":{"max_limit":50},"note":"prose","other":{"max_limit":1e2}},
"agent_topology":{"reader":{"reads":["account"],"writes":[]},"teller":{"writes":["account","log"]}},
"initial_state":{"account":{"balance":10},"log":["new"]},
"workflow":{"nodes":[{"id":"n","task_description":"t"}],"edges":[]},"evaluation":{}}`

func start(t *testing.T, agent string) *sandbox.Sandbox {
	t.Helper()
	s, err := scenario.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	box, err := sandbox.New(s, agent)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// agentv.md 1.3: the shapes of results.
func TestCall(t *testing.T) {
	const untouched, paid = `{"account":{"balance":10},"log":["new"]}`, `{"account":{"balance":5},"log":["paid"]}`
	for _, tt := range []struct{ agent, tool, params, result, state string }{
		{"", "pay", `{"amount":50}`, `{"status":"success","message":"paid"}`, paid},
		{"", "pay", `{}`, `{"status":"success","message":"paid"}`, paid},
		{"", "pay", `{"amount":50.01}`, `{"status":"policy_violation","violation":"Amount 50.01 exceeds limit of 50"}`, untouched},
		{"", "pay", `{"amount":"51"}`, `{"status":"policy_violation","violation":"Amount 51 exceeds limit of 50"}`, untouched},
		{"", "pay", `{"amount":1e999}`, `{"status":"policy_violation","violation":"Amount 1e999 exceeds limit of 50"}`, untouched},
		{"", "pay", `{"amount":-1e999}`, `{"status":"success","message":"paid"}`, paid},
		{"", "pay", `{"amount":"many"}`, `{"status":"success","message":"paid"}`, paid},
		{"", "other", `{"amount":101}`, `{"status":"policy_violation","violation":"Amount 101 exceeds limit of 1e2"}`, untouched},
		{"", "say", `{}`, `"just text"`, untouched},
		{"", "look", `{}`, `{"status":"success","message":"Executed look"}`, untouched},
		{"", `un"declared`, `{}`, `{"status":"success","message":"Executed un\"declared"}`, untouched},
		{"reader", "pay", `{}`, `{"status":"error","message":"Agent may not write account.balance"}`, untouched},
		{"reader", "say", `{}`, `"just text"`, untouched},
		{"teller", "pay", `{}`, `{"status":"success","message":"paid"}`, paid},
	} {
		box := start(t, tt.agent)
		c := box.Call(tt.tool, []byte(tt.params))
		if string(c.Result) != tt.result || string(box.State().JSON()) != tt.state || c.Changed != (tt.state == paid) {
			t.Errorf("%s %s by %q: %s, state %s, changed %v, want %s, %s", tt.tool, tt.params, tt.agent, c.Result, box.State().JSON(), c.Changed, tt.result, tt.state)
		}
	}
}

func TestUsed(t *testing.T) {
	box := start(t, "")
	for _, tool := range []string{"say", "pay", "say"} {
		box.Call(tool, []byte(`{}`))
	}
	if got := box.Used(); len(got) != 2 || got[0] != "pay" || got[1] != "say" || len(box.Calls()) != 3 {
		t.Errorf("used %q, %d calls", got, len(box.Calls()))
	}
	if c := box.Call("pay", []byte(`{}`)); c.Changed {
		t.Error("a change to what is already so counts as one")
	}
}

func TestPaths(t *testing.T) {
	s, err := sandbox.NewState([]byte(`{"a":{"b":[{"c":1},2]},"x.y":3,"n":12345678901234567890}`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"a.b.0.c": "1", "a.b.1": "2", "x.y": "3", "n": "12345678901234567890"} {
		want, err := sandbox.Decode([]byte(want))
		if got, ok := s.Lookup(path); err != nil || !ok || !sandbox.Equal(got, want) {
			t.Errorf("Lookup(%q) = %v, %v, want %v", path, got, ok, want)
		}
	}
	for _, path := range []string{"b", "a.c", "a.b.2", "a.b.-1", "a.b.x", "a.b.0.c.d"} {
		if got, ok := s.Lookup(path); ok {
			t.Errorf("Lookup(%q) = %v, want nothing", path, got)
		}
	}
	for _, path := range []string{"new.deep.path", "a.b.0.c", "a.b.1.d", "x.y", "n.z"} {
		s.Set(path, "set")
		if got, ok := s.Lookup(path); !ok || got != "set" {
			t.Errorf("after Set(%q): %v, %v in %s", path, got, ok, s.JSON())
		}
	}
}

func TestEqual(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{`1`, `1.0`, true}, {`1e2`, `100`, true}, {`9007199254740993`, `9007199254740992`, false}, {`1`, `"1"`, false},
		{`[1,{"a":null}]`, `[1.0,{"a":null}]`, true}, {`[1]`, `[1,2]`, false}, {`{"a":1}`, `{"b":1}`, false},
		{`true`, `true`, true}, {`null`, `false`, false}, {`{}`, `[]`, false}, {`"a"`, `"a"`, true},
	} {
		a, errA := sandbox.Decode([]byte(tt.a))
		b, errB := sandbox.Decode([]byte(tt.b))
		if got := sandbox.Equal(a, b); errA != nil || errB != nil || got != tt.want || sandbox.Equal(b, a) != got {
			t.Errorf("Equal(%s, %s) = %v", tt.a, tt.b, got)
		}
	}
}
