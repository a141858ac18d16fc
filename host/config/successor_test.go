package config

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// hot is what a reload applies: keys, tables that end in a dot, and * for any
// name.
var hot = []string{
	"agent.workflow", "agent.max_history", "agent.max_tool_calls", "agent.request_timeout", "agent.skills.",
	"model.agent.name", "model.agent.reasoning_effort", "model.agent.temperature", "model.agent.max_tokens",
	"model.guard.name", "model.guard.reasoning_effort", "model.guard.temperature", "model.guard.max_tokens",
	"tools.mcp.include", "tools.mcp.overrides.", "prompts.", "guard.", "actions.",
	"plugins.dir", "plugins.lock", "plugins.defaults.", "plugins.*.", "variant.",
}

// DECISIONS 4: every key is hot or waits for a restart, and says which.
func TestEveryKeyIsHotOrNot(t *testing.T) {
	for _, k := range knownKeys(reflect.TypeFor[Config](), "") {
		key := k.table + "." + k.key
		isHot := slices.ContainsFunc(hot, func(h string) bool {
			return key == h || strings.HasSuffix(h, ".") && strings.HasPrefix(key, h)
		})
		isStart := slices.ContainsFunc(startKeys(), func(s startKey) bool {
			return s.key != "" && (key == s.key || strings.HasPrefix(key, s.key+"."))
		})
		if isHot == isStart {
			t.Errorf("%s: in the list of hot keys: %v, in startKeys: %v", key, isHot, isStart)
		}
	}
}

func TestSucceed(t *testing.T) {
	started := shipped(t)
	if _, waiting := started.Succeed(shipped(t)); len(waiting) > 0 {
		t.Errorf("the same file: %q", waiting)
	}
	next := shipped(t)
	next.Agent.Title, next.Server.Drain = "Other", time.Minute
	next.Model.Agent.BaseURL, next.Model.Agent.Name = "http://elsewhere/v1", "larger"
	next.Tools.MCP.APIKey = NewSecret("another")
	next.Guard.BlockMessage, next.SHA256 = "No.", "new"
	applied, waiting := started.Succeed(next)
	want := []string{"[agent] title", "[server]", "[model.agent] base_url", "environment MCP_API_KEY"}
	if !slices.Equal(waiting, want) {
		t.Errorf("waiting for a restart: %q, want %q", waiting, want)
	}
	if applied.Agent.Title != started.Agent.Title || applied.Server != started.Server ||
		applied.Model.Agent.BaseURL != started.Model.Agent.BaseURL || applied.Tools.MCP.APIKey != started.Tools.MCP.APIKey {
		t.Error("a key that waits for a restart was applied")
	}
	if applied.Model.Agent.Name != "larger" || applied.Guard.BlockMessage != "No." || applied.SHA256 != "new" {
		t.Error("a hot key was not applied")
	}
	if next.Agent.Title != "Other" || started.Guard.BlockMessage == "No." {
		t.Error("a configuration was changed")
	}
}

func TestKeyless(t *testing.T) {
	if _, err := Load(Source{Path: shippedPath}); len(Problems(err)) != 2 {
		t.Errorf("without keys: %v", err)
	}
	if _, err := Load(Source{Path: shippedPath, Keyless: true}); err != nil {
		t.Errorf("for a command that needs none: %v", err)
	}
	// Modules are built, pinned and put into an image where no secret is.
	dir := t.TempDir()
	write(t, dir, "system.md", "You are helpful.\n")
	write(t, dir, "agent.toml", minimal+"[actions.change]\nenabled = true\n")
	src := Source{Path: filepath.Join(dir, "agent.toml"), Keyless: true}
	for _, env := range []vars{{}, vars{}.with("HITL_ENABLE_INTERACTIVE", "true")} {
		src.Env = env.look
		if c, err := Load(src); err != nil || c.ApprovalsOn() {
			t.Errorf("with an action and %v: %v", env, err)
		}
	}
	src.Env = vars{}.with("HITL_APPROVAL_SECRET", "short").look
	_, err := Load(src)
	wantProblems(t, err, "environment HITL_APPROVAL_SECRET: expected at least 24 characters")
}
