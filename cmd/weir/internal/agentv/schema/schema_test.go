package schema_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/cmd/weir/internal/agentv/schema"
)

// Every shipped scenario passes, and what is wrong is named with its path.
func TestScenario(t *testing.T) {
	s, err := schema.Scenario()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../testdata/aes/*.json")
	if err != nil || len(files) < 7 {
		t.Fatalf("scenarios: %q, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	const good = `{"aes_version":1.4,"metadata":{"id":"a","name":"A","compliance_level":"Gold"},"workflow":{"nodes":[{"id":"n","task_description":"t"}],"edges":[]},"evaluation":{}}`
	if err := s.Check([]byte(good)); err != nil {
		t.Fatalf("the control: %v", err)
	}
	for _, tt := range []struct{ old, new, want string }{
		{`1.4`, `1.3`, "aes_version: "},
		{`"id":"a",`, ``, "metadata: missing property 'id'"},
		{`"Gold"`, `"Bronze"`, "metadata.compliance_level: "},
		{`"t"}`, `7}`, "workflow.nodes[0].task_description: got number, want string"},
		{`"nodes":[{"id":"n","task_description":"t"}]`, `"nodes":[]`, "workflow.nodes: minItems"},
		{`"evaluation":{}`, `"evaluation":{"metrics":[3]}`, "evaluation.metrics[0]: "},
		{`"evaluation":{}`, `"evaluation":{},"tools":{"x":{"state_changes":[{"path":"p"}]}}`, "tools.x.state_changes[0]: "},
		{`"evaluation":{}`, `"evaluation":{},"max_turns":0`, "max_turns: "},
		{`"t"}`, `"t","success_criteria":[{"metric":"x"}]}`, "workflow.nodes[0].success_criteria[0]: missing property 'threshold'"},
	} {
		err := s.Check([]byte(strings.Replace(good, tt.old, tt.new, 1)))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s for %s: %v, want %s", tt.new, tt.old, err, tt.want)
		}
	}
}

// The copies are the published files, where those are at hand.
func TestCopies(t *testing.T) {
	const published = "../../../../../../shared/data/aes/schema"
	if _, err := os.Stat(published); err != nil {
		t.Skip("the published schemas are not at hand: the copies stand for themselves")
	}
	for _, name := range []string{"aes.schema.json", "runs.schema.json", "definitions/metadata.json", "definitions/workflow.json", "definitions/evaluation.json"} {
		want, err := os.ReadFile(filepath.Join(published, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("upstream", name))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s differs from the published file (%v)", name, err)
		}
	}
}

func TestPath(t *testing.T) {
	for pointer, want := range map[string]string{
		"": "(root)", "/workflow/nodes/0/id": "workflow.nodes[0].id", "/tools/a~1b~0c": "tools.a/b~c",
	} {
		if got := schema.Path(pointer); got != want {
			t.Errorf("Path(%q) = %q, want %q", pointer, got, want)
		}
	}
}
