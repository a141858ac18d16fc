//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// Of the shipped plugins only the loop is left, variants are gone, and nothing
// else is lost.
func TestUnguarded(t *testing.T) {
	path, err := unguarded(shipped, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var was, is map[string]map[string]any
	if _, err := toml.DecodeFile(shipped, &was); err != nil {
		t.Fatal(err)
	}
	if _, err := toml.DecodeFile(path, &is); err != nil {
		t.Fatal(err)
	}
	guards := 0
	for name, value := range is["plugins"] {
		if _, table := value.(map[string]any); table && name != "react" && name != "defaults" {
			t.Errorf("[plugins.%s] is left", name)
		}
	}
	for name := range was["plugins"] {
		if is["plugins"][name] == nil {
			guards++
		}
	}
	if is["plugins"]["react"] == nil || guards < 3 {
		t.Errorf("%d guardrails left out of %v", guards, was["plugins"])
	}
	for name := range was {
		if lost := is[name] == nil; lost != (name == "variant") {
			t.Errorf("[%s] is lost: %v", name, lost)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "prompts", "system.md")); err != nil {
		t.Error(err)
	}
}

// What cannot be compared has exit code 2, as a comparison that broke.
func TestComparisonThatCannotBegin(t *testing.T) {
	config := filepath.Join(t.TempDir(), "agent.toml")
	if err := os.WriteFile(config, []byte("[agent]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"--config", config, "--compare", t.TempDir()}, &stdout, &stderr)
	if code != 2 || !strings.Contains(stderr.String(), "expected [agent] workflow") {
		t.Errorf("code %d, %s", code, stderr.String())
	}
}
