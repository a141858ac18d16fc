package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/host/config"
)

// declaring loads the shipped agent.toml after a change of its text.
func declaring(t *testing.T, old, new string) *config.Config {
	t.Helper()
	data, err := os.ReadFile("../agent.toml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), old, new, 1)
	if text == string(data) && old != new {
		t.Fatalf("%q is not in agent.toml", old)
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "prompts"), os.DirFS("../prompts")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "agent.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HITL_APPROVAL_SECRET": strings.Repeat("s", 24), "HITL_ENABLE_INTERACTIVE": "false"}
	if strings.Contains(new, "enabled = true") {
		env["HITL_ENABLE_INTERACTIVE"] = "true"
	}
	cfg, err := config.Load(config.Source{Path: path, Keyless: true,
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// As shipped the agent offers no action; one that is enabled is there, and one
// that is not is checked all the same.
func TestDeclaredActions(t *testing.T) {
	const off, on = "\nenabled = false\n", "\nenabled = true\n"
	for name, tt := range map[string]struct {
		old, new string
		tools    int
		err      string
	}{
		"shipped":                     {off, off, 0, ""},
		"enabled":                     {off, on, 1, ""},
		"wrong, and not enabled":      {"# keep = \"Keep — {choice}\"", "keep = \"Keep\"", 0, `action "ticket_priority_change": texts: keep: expected {choice} in it`},
		"an argument that is claimed": {"# note = \"note\"", "note = \"approved\"", 0, `the name "approved" is reserved`},
	} {
		c, err := actionsOf(declaring(t, tt.old, tt.new))
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case len(c.Tools()) != tt.tools:
			t.Errorf("%s: %d tools, want %d", name, len(c.Tools()), tt.tools)
		}
	}
}
