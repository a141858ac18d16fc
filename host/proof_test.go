package host_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest   = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark|Example)[A-Z]\w+`)
	definedTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)[A-Z]\w+)\(`)
	namedTalk   = regexp.MustCompile("`([0-9][0-9.]*-[a-z-]+)`")
)

// The documents prove what they say by naming tests and conversations, which
// were renamed once without them.
func TestDocumentsNameWhatProves(t *testing.T) {
	have := make(map[string]bool)
	var documents []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case strings.HasSuffix(path, ".txtar"):
			have[strings.TrimSuffix(d.Name(), ".txtar")] = true
		case strings.HasSuffix(path, ".md"):
			documents = append(documents, path)
		case strings.HasSuffix(path, "_test.go"):
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range definedTest.FindAllSubmatch(data, -1) {
				have[string(m[1])] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	for _, path := range documents {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range namedTest.FindAllString(string(data), -1) {
			if names++; !have[name] {
				t.Errorf("%s names %s, which is no test", path, name)
			}
		}
		for _, m := range namedTalk.FindAllStringSubmatch(string(data), -1) {
			if names++; !have[m[1]] {
				t.Errorf("%s names %s, which is no conversation", path, m[1])
			}
		}
	}
	if names < 100 {
		t.Errorf("%d names in %d documents, expected the proof tables among them", names, len(documents))
	}
}
