package config

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// readYAML reads an export as the evaluator does.
func readYAML(t *testing.T, data []byte) (system string, prompts any) {
	t.Helper()
	var doc struct {
		Workflow struct {
			SystemPrompt string `json:"system_prompt"`
		} `json:"workflow"`
		Guardrails struct {
			Prompts any `json:"prompts"`
		} `json:"guardrails"`
	}
	if err := yaml.UnmarshalStrict(data, &doc); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return doc.Workflow.SystemPrompt, doc.Guardrails.Prompts
}

// sorted is json.dumps(…, sort_keys=True, separators=(",", ":"), ensure_ascii=False).
func sorted(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(b.String())
	return []byte(strings.TrimSuffix(text, "\n"))
}

// DECISIONS 9: the evaluator computes from the export what /version shows.
func TestEvaluatorYAML(t *testing.T) {
	c := shipped(t)
	data := c.EvaluatorYAML()
	system, prompts := readYAML(t, data)
	if got := digest([]byte(system)); got != c.PromptSHA256() {
		t.Errorf("prompt_sha256 %s, want %s", got, c.PromptSHA256())
	}
	if got := digest(sorted(t, prompts)); got != c.GuardPromptsSHA256() {
		t.Errorf("guardrails_prompts_sha256 %s, want %s; prompts %s", got, c.GuardPromptsSHA256(), sorted(t, prompts))
	}
	if other := bytes.Replace(data, []byte("max_tokens: 4"), []byte("max_tokens: 5"), 1); bytes.Equal(other, data) {
		t.Error("the control changes nothing")
	} else if _, prompts := readYAML(t, other); digest(sorted(t, prompts)) == c.GuardPromptsSHA256() {
		t.Error("another max_tokens has the same digest")
	}
}

// A guardrail without max_tokens has an entry without it, and an agent without
// guardrails an empty list.
func TestEvaluatorYAMLOfOthers(t *testing.T) {
	c := mustLoad(t, minimal, keys())
	if _, prompts := readYAML(t, c.EvaluatorYAML()); digest(sorted(t, prompts)) != c.GuardPromptsSHA256() || c.GuardPromptsSHA256() != digest([]byte("[]")) {
		t.Errorf("%s", c.EvaluatorYAML())
	}
	c = mustLoad(t, minimal+"[plugins.g]\nprompts = ['system']\n", keys())
	_, prompts := readYAML(t, c.EvaluatorYAML())
	if digest(sorted(t, prompts)) != c.GuardPromptsSHA256() || bytes.Contains(c.EvaluatorYAML(), []byte("max_tokens")) {
		t.Errorf("%s", c.EvaluatorYAML())
	}
}

// Every text comes back byte for byte, and no line of it is taken for another
// part of the document.
func FuzzEvaluatorYAML(f *testing.F) {
	for _, s := range []string{"", "\n", "a\n", "a\n\n", " a\n  b\n", "\ta", "a \nb", `"\`, "# no comment\n--- \n...\n", "é😀\u0085\u2028\u2029\ufeff\ufffe\u00a0\x00\x1b\x7f", "a: b\n- c\n%x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if checkPrompt([]byte(text+"x")) != nil { // what no prompt file may hold
			return
		}
		c := &Config{Path: "agent.toml", Prompts: Prompts{SystemPrompt: {Text: text}}}
		c.Plugins.List = []Plugin{{Name: "g", Prompts: []string{SystemPrompt}, config: map[string]any{"max_tokens": int64(7)}}}
		system, prompts := readYAML(t, c.EvaluatorYAML())
		if system != text {
			t.Errorf("%q became %q:\n%s", text, system, c.EvaluatorYAML())
		}
		if list, ok := prompts.([]any); !ok || len(list) != 1 || list[0].(map[string]any)["content"] != text {
			t.Errorf("%q became %v", text, prompts)
		}
	})
}
