package guard

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/abi"
)

type toolFunc func(tool, result string, ask abi.Ask) (*abi.Verdict, error)

func (f toolFunc) CheckToolCall(_ context.Context, q *abi.CheckToolCallRequest) (*abi.Verdict, uint64, error) {
	v, err := f(q.Tool, "", q.Ask)
	return v, 3, err
}

func (f toolFunc) CheckToolResult(_ context.Context, q *abi.CheckToolResultRequest) (*abi.Verdict, uint64, error) {
	v, err := f(q.Tool, q.Result, q.Ask)
	return v, 3, err
}

// DECISIONS 1: the first block wins; a failure that blocks has its own words;
// an approval that nobody can give is a block; a decision only when some guard
// did not allow.
func TestToolHooks(t *testing.T) {
	verdict := func(v abi.Verdict) toolFunc {
		return func(string, string, abi.Ask) (*abi.Verdict, error) { return &v, nil }
	}
	allow := verdict(abi.Verdict{Verdict: abi.VerdictAllow})
	block := verdict(abi.Verdict{Verdict: abi.VerdictBlock, ReasonCode: "no_writes", Reason: "secret reason"})
	fails := toolFunc(func(string, string, abi.Ask) (*abi.Verdict, error) { return nil, errors.New("no") })
	approval := verdict(abi.Verdict{Verdict: abi.VerdictRequireApproval, ReasonCode: "big_change"})
	head := func(stage, outcome, blocked, source string) string {
		return `{"stage":"` + stage + `","name":"a","outcome":"` + outcome + `","blocked":` + blocked +
			`,"modified":false,"tool":"get\nit","decision_source":"` + source + `","llm_call_count":0,"guards":[`
	}
	for _, c := range []struct {
		name   string
		guards []toolFunc
		allow  bool // on error
		call   ToolVerdict
		result ToolVerdict
	}{
		{"all allow", []toolFunc{allow, allow}, false, ToolVerdict{}, ToolVerdict{}},
		{"no guards", nil, false, ToolVerdict{}, ToolVerdict{}},
		{"first block wins", []toolFunc{allow, block, approval}, false,
			ToolVerdict{Blocked: true, Reason: "no_writes", Decision: abi.Raw(head("tool_call", "blocked", "true", "plugin:b") + entry("a", "allow", "", "3") + "," + entry("b", "block", "no_writes", "3") + "," + entry("c", "skipped", "", "0") + "]}")},
			ToolVerdict{Blocked: true, Reason: "no_writes", Decision: abi.Raw(head("tool_result", "blocked", "true", "plugin:b") + entry("a", "allow", "", "3") + "," + entry("b", "block", "no_writes", "3") + "," + entry("c", "skipped", "", "0") + "]}")}},
		{"a failure blocks", []toolFunc{fails}, false,
			ToolVerdict{Blocked: true, Reason: "the check is not available", Decision: abi.Raw(head("tool_call", "blocked", "true", "plugin_failure:a") + entry("a", "error", "failed", "3") + "]}")},
			ToolVerdict{Blocked: true, Reason: "the check is not available", Decision: abi.Raw(head("tool_result", "blocked", "true", "plugin_failure:a") + entry("a", "error", "failed", "3") + "]}")}},
		{"a failure that allows is seen", []toolFunc{fails}, true,
			ToolVerdict{Decision: abi.Raw(head("tool_call", "passed", "false", "plugin_failure:a") + entry("a", "error", "failed", "3") + "]}")},
			ToolVerdict{Decision: abi.Raw(head("tool_result", "passed", "false", "plugin_failure:a") + entry("a", "error", "failed", "3") + "]}")}},
		{"approval", []toolFunc{approval}, false,
			ToolVerdict{Blocked: true, Reason: "approval_unavailable", Decision: abi.Raw(head("tool_call", "blocked", "true", "plugin:a") + entry("a", "block", "approval_unavailable", "3") + "]}")},
			ToolVerdict{Blocked: true, Reason: "the check is not available", Decision: abi.Raw(head("tool_result", "blocked", "true", "plugin_failure:a") + entry("a", "error", "bad_reply", "3") + "]}")}},
		{"block without a code", []toolFunc{verdict(abi.Verdict{Verdict: abi.VerdictBlock})}, false,
			ToolVerdict{Blocked: true, Reason: "blocked", Decision: abi.Raw(head("tool_call", "blocked", "true", "plugin:a") + entry("a", "block", "", "3") + "]}")},
			ToolVerdict{Blocked: true, Reason: "blocked", Decision: abi.Raw(head("tool_result", "blocked", "true", "plugin:a") + entry("a", "block", "", "3") + "]}")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var guards []Guard
			for i, f := range c.guards {
				guards = append(guards, Guard{Name: string(rune('a' + i)), AllowOnError: c.allow, ToolCall: f, ToolResult: f})
			}
			s := must(New(guards, Options{Clock: still})).Session(SessionOptions{Stamp: stamp})
			check := ToolCheck{Tool: "get\nit", Arguments: abi.Raw(`{}`)}
			got, err := s.CheckToolCall(t.Context(), check)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.call, got, cmp.Transformer("text", func(r abi.Raw) string { return string(r) })); diff != "" {
				t.Errorf("call (-want +got):\n%s", diff)
			}
			got, err = s.CheckToolResult(t.Context(), check, "result", false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.result, got, cmp.Transformer("text", func(r abi.Raw) string { return string(r) })); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

// What the guards are told of a call and of its result.
func TestToolRequests(t *testing.T) {
	g := &toolSpy{}
	s := must(New([]Guard{{Name: "a", GrantRoles: true, ToolCall: g, ToolResult: g}}, Options{})).Session(
		SessionOptions{Stamp: stamp, Roles: []string{"admin"}})
	check := ToolCheck{Tool: "get", Arguments: abi.Raw(`{"n":1.0}`), ReadOnly: true, Text: "latest"}
	if _, err := s.CheckToolCall(t.Context(), check); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CheckToolResult(t.Context(), check, "text", true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(abi.CheckToolCallRequest{Call: stamp(), Tool: "get", Arguments: abi.Raw(`{"n":1.0}`), ReadOnly: true, Text: "latest", Roles: []string{"admin"}}, g.call); diff != "" {
		t.Errorf("call (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(abi.CheckToolResultRequest{Call: stamp(), Tool: "get", Arguments: abi.Raw(`{"n":1.0}`), Result: "text", Failed: true, Roles: []string{"admin"}}, g.result); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

type toolSpy struct {
	call   abi.CheckToolCallRequest
	result abi.CheckToolResultRequest
}

func (g *toolSpy) CheckToolCall(_ context.Context, q *abi.CheckToolCallRequest) (*abi.Verdict, uint64, error) {
	g.call = *q
	return &abi.Verdict{Verdict: abi.VerdictAllow}, 0, nil
}

func (g *toolSpy) CheckToolResult(_ context.Context, q *abi.CheckToolResultRequest) (*abi.Verdict, uint64, error) {
	g.result = *q
	return &abi.Verdict{Verdict: abi.VerdictAllow}, 0, nil
}

// DECISIONS 1: where a person can be asked, require_approval of any guard asks
// one, unless another guard blocks.
func TestToolApproval(t *testing.T) {
	verdict := func(v abi.Verdict) toolFunc {
		return func(string, string, abi.Ask) (*abi.Verdict, error) { return &v, nil }
	}
	allow := verdict(abi.Verdict{Verdict: abi.VerdictAllow})
	block := verdict(abi.Verdict{Verdict: abi.VerdictBlock, ReasonCode: "no_writes"})
	approval := verdict(abi.Verdict{Verdict: abi.VerdictRequireApproval, ReasonCode: "big_change", Message: "Really?"})
	for _, c := range []struct {
		name     string
		guards   []toolFunc
		approve  bool
		blocked  bool
		contains string
	}{
		{"one", []toolFunc{allow, approval}, true, false, `"outcome":"approval_required","blocked":false`},
		{"and a block", []toolFunc{approval, block}, false, true, `"outcome":"blocked","blocked":true`},
		{"none", []toolFunc{allow}, false, false, ``},
	} {
		var guards []Guard
		for i, f := range c.guards {
			guards = append(guards, Guard{Name: string(rune('a' + i)), ToolCall: f})
		}
		s := must(New(guards, Options{Clock: still})).Session(SessionOptions{Stamp: stamp, Approvals: true})
		got, err := s.CheckToolCall(t.Context(), ToolCheck{Tool: "x", Arguments: abi.Raw(`{}`)})
		if err != nil || got.Approve != c.approve || got.Blocked != c.blocked || !strings.Contains(string(got.Decision), c.contains) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
		if c.approve && got.Message != "Really?" {
			t.Errorf("%s: message %q", c.name, got.Message)
		}
	}
}
