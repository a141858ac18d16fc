package config

import (
	"path/filepath"
	"strings"
	"testing"
)

// A host is asked how it is when its configuration is wrong.
func TestLoadAdmin(t *testing.T) {
	const key = "admin-key-of-24-characters"
	dir := t.TempDir()
	path := filepath.Join(dir, "agent.toml")
	socket := "unix:" + filepath.Join(dir, "run/a.sock")
	for name, tt := range map[string]struct {
		text, key    string
		listen, want string
	}{
		"unknown keys and bad values": {"[agent]\nnam = 1\nmax_history = 'x'\n[admin]\nlisten = 'unix:run/a.sock'\n", key, socket, ""},
		"a prompt that is not there":  {"[prompts]\nsystem = 'none.md'\n[admin]\nlisten = '127.0.0.1:9'\n", key, "127.0.0.1:9", ""},
		"no TOML before it":           {"[agent\nname = \n[admin]\nlisten = 'unix:run/a.sock'\n[reload]\n", key, socket, ""},
		"no TOML behind it":           {"[admin]\nlisten = '127.0.0.1:9' # so\n\n[[reload\n", key, "127.0.0.1:9", ""},
		"no TOML and no such table":   {"[agent\n", key, "127.0.0.1:8001", ""},
		"no key":                      {"[admin]\njunk = 1\n", "", "127.0.0.1:8001", ""},
		"a bad address":               {"junk = 1\n[admin]\nlisten = 'here'\n", key, "", `[admin] listen: expected host:port or unix: and a path, got "here"`},
		"a bad table":                 {"[admin]\nlisten = 7\n", key, "", "[admin] listen: expected a string"},
		"no TOML in it":               {"[admin]\nlisten = \n", key, "", "agent.toml:2: "},
		"a short key":                 {"", "short", "", "WEIR_ADMIN_KEY: expected at least 24 characters"},
	} {
		write(t, dir, "agent.toml", tt.text)
		a, err := LoadAdmin(Source{Path: path, Env: func(name string) (string, bool) {
			if name != "WEIR_ADMIN_KEY" {
				return "", false
			}
			return tt.key, true
		}})
		switch {
		case tt.want == "" && (err != nil || a.Listen != tt.listen || a.APIKey.Reveal() != tt.key):
			t.Errorf("%s: %q, %v", name, a.Listen, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "junk")):
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := LoadAdmin(Source{Path: filepath.Join(dir, "none.toml")}); err == nil || !strings.Contains(err.Error(), "expected a readable configuration file") {
		t.Errorf("no file: %v", err)
	}
}
