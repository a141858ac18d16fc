//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The copy differs in the switched lines only, finds what relative paths name,
// and goes; the user's file stays as it is.
func TestApproving(t *testing.T) {
	before, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	path, remove, err := approving(shipped)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	was, is := strings.Split(string(before), "\n"), strings.Split(string(text), "\n")
	if len(was) != len(is) {
		t.Fatalf("%d lines became %d", len(was), len(is))
	}
	var changed []string
	for i := range was {
		if was[i] != is[i] {
			changed = append(changed, strings.TrimSpace(strings.Split(is[i], "#")[0]))
		}
	}
	if strings.Join(changed, "; ") != `enabled = true; backend = "jetstream"; enabled = true` {
		t.Errorf("changed: %q", changed)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "prompts", "system.md")); err != nil {
		t.Error(err)
	}
	remove()
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("the copy is left: %v", err)
	}
	if after, err := os.ReadFile(shipped); err != nil || string(after) != string(before) {
		t.Errorf("the file itself was changed, %v", err)
	}
}

// Who has switched approvals on as docs/approvals.md says can still see the demo.
func TestApprovingTwice(t *testing.T) {
	path, remove, err := approving(shipped)
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	again, removeAgain, err := approving(path)
	if err != nil {
		t.Fatal(err)
	}
	defer removeAgain()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(again); err != nil || string(after) != string(before) {
		t.Errorf("the copy was changed, %v", err)
	}
}

// A configuration in which approvals cannot be switched on is named, and
// nothing is left.
func TestApprovingNeedsItsLines(t *testing.T) {
	temporary, config := t.TempDir(), filepath.Join(t.TempDir(), "agent.toml")
	t.Setenv("TMPDIR", temporary)
	if err := os.WriteFile(config, []byte("[agent]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := approving(config); err == nil || !strings.Contains(err.Error(), "to switch on for the demo what is off as shipped") {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}
