package pdk_test

import (
	"os"
	"strings"
	"testing"
)

// The guardrail that README and package comment show is the one that
// TestFirstGuardrail builds and calls, but for its first line.
func TestShownGuardrailIsTheTestedOne(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, want, _ := strings.Cut(read("testdata/noshouting/main.go"), "\n")
	_, shown, _ := strings.Cut(read("../README.md"), "```go\n// Command ")
	_, shown, _ = strings.Cut(shown, "\n")
	if code, _, ok := strings.Cut(shown, "```"); !ok || code != want {
		t.Errorf("README shows\n%s", code)
	}
	var code strings.Builder
	for line := range strings.Lines(read("doc.go")) {
		if body, ok := strings.CutPrefix(line, "//\t"); ok && !strings.Contains(body, "GOOS=") {
			code.WriteString(body)
		} else if line == "//\n" && code.Len() > 0 {
			code.WriteString("\n")
		}
	}
	if got := strings.TrimSpace(code.String()); got != strings.TrimSpace(want) {
		t.Errorf("the package comment shows\n%s", got)
	}
}
