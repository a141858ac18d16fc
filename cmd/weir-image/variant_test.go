package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/host"
)

// An image has the files in which variants differ, also of one that has no share
// yet, and is refused when agent.lock does not pin them.
func TestVariantsAreInTheImage(t *testing.T) {
	dir := folder(t)
	config := filepath.Join(dir, "agent.toml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	own := "[variant.plugins.tool-injection]\nmode = \"enforce\"\n"
	if !strings.Contains(string(text), own) {
		t.Fatalf("agent.toml lacks %q", own)
	}
	changed := strings.Replace(string(text), own, own+"module = \"plugins/dist/second.wasm\"\n[variant.plugins.extra]\nmodule = \"plugins/dist/second.wasm\"\n", 1)
	put(t, config, []byte(strings.Replace(changed, "[variant.prompts]\n", "[variant.prompts]\nself_check_input = \"prompts/short.md\"\n", 1)))
	put(t, filepath.Join(dir, "prompts", "short.md"), []byte("Is it fine?\n"))
	module, err := os.ReadFile(filepath.Join(dir, "plugins", "dist", "output-pii.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "plugins", "dist", "second.wasm"), module)
	if _, err := new(content).policy(config); err == nil || !strings.Contains(err.Error(), "variant.tool-injection-enforced.") {
		t.Errorf("without a pin: %v", err)
	}
	pins, err := host.Pins(host.Options{ConfigPath: config})
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "plugins", "dist", "agent.lock"), pins.Encode())
	entries, err := new(content).policy(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"app/prompts/short.md", "app/prompts/self_check_input.md", "app/plugins/dist/second.wasm"} {
		if !slices.ContainsFunc(entries, func(e entry) bool { return e.name == name }) {
			t.Errorf("the image lacks %s", name)
		}
	}
}
