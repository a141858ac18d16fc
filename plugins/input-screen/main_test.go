package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"

	"weir/abi"
	"weir/pdk"
)

const testPrompt = "Block this?\n{{ user_input }}\n"

// shipped is the configuration that agent.toml ships.
func shipped(t testing.TB) abi.Raw {
	t.Helper()
	raw, err := os.ReadFile("testdata/config.json")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// load returns a screen with the shipped configuration, changed by change.
func load(t testing.TB, change func(*config)) *screen {
	t.Helper()
	c, err := readConfig(shipped(t))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(c)
	}
	return &screen{config: *c}
}

// run plays the host's part: it asks the classifier and comes back.
func run(t testing.TB, s *screen, text string, history []abi.Turn, reply abi.AskReply) *abi.Verdict {
	t.Helper()
	q := &abi.CheckInputRequest{Text: text, History: history}
	v, err := s.check(q)
	if err != nil {
		t.Fatal(err)
	}
	if v.Verdict == abi.VerdictAskModel {
		q.State, q.Reply = v.State, &reply
		if v, err = s.check(q); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Validate(abi.HookCheckInput); err != nil {
		t.Fatal(err)
	}
	return v
}

// fields are the members of a decision that a test looks at.
type fields struct {
	Stage      string   `json:"stage"`
	Outcome    string   `json:"outcome"`
	Blocked    bool     `json:"blocked"`
	LLM        bool     `json:"llm_blocked"`
	Available  bool     `json:"classifier_available"`
	Block      []string `json:"deterministic_block_matches"`
	Allow      []string `json:"deterministic_allow_matches"`
	Overridden bool     `json:"allow_override_applied"`
	Source     string   `json:"decision_source"`
}

func read(t testing.TB, v *abi.Verdict) fields {
	t.Helper()
	var f fields
	if err := json.Unmarshal(v.Decision, &f); err != nil {
		t.Fatalf("decision %s: %v", v.Decision, err)
	}
	return f
}

// The page that operators copy from and the file that tests use are one.
func TestReadmeIsTheShippedConfiguration(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```toml\n")
	block, _, _ = strings.Cut(block, "```")
	var doc struct {
		Plugins map[string]struct {
			Config map[string]any `toml:"config"`
		} `toml:"plugins"`
	}
	if _, err := toml.Decode(block, &doc); err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(shipped(t), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, throughJSON(t, doc.Plugins["input-screen"].Config)); diff != "" {
		t.Errorf("README.md and testdata/config.json differ (-json +toml):\n%s", diff)
	}
}

func throughJSON(t *testing.T, v any) (out map[string]any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestConfigureThroughThePdk(t *testing.T) {
	t.Cleanup(func() { current = nil })
	for _, tt := range []struct{ name, config, prompts, want string }{
		{"shipped", string(shipped(t)), `[{"name":"self_check_input","text":"? {{ user_input }}"}]`, `{"prompts":["self_check_input"]}`},
		{"no prompt", string(shipped(t)), `[]`, `{"error":"prompt self_check_input: missing"}`},
		{"blind prompt", string(shipped(t)), `[{"name":"self_check_input","text":"?"}]`, `{"error":"prompt self_check_input: expected the placeholder {{ user_input }}"}`},
		{"empty", `{}`, `[]`, `{"error":"config: critical_patterns: expected at least one while deterministic_fallback is true"}`},
	} {
		got, err := pdk.Invoke(abi.HookConfigure, []byte(`{"now":0,"seed":"0","config":`+tt.config+`,"prompts":`+tt.prompts+`}`))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
}

// Every refusal names its key (8.3: bad patterns and unknown keys refuse the start).
func TestConfigRefusals(t *testing.T) {
	const ok = `"critical_patterns":[{"name":"a","expr":"x"}]`
	if _, err := readConfig(abi.Raw(`{` + ok + `}`)); err != nil {
		t.Fatalf("the control is refused: %v", err)
	}
	if _, err := readConfig(abi.Raw(`{"deterministic_fallback":false}`)); err != nil {
		t.Fatalf("without patterns that nobody uses: %v", err)
	}
	for config, want := range map[string]string{
		`{"critical_patterns":[]}`:                                                             "critical_patterns: expected at least one",
		`{"critical_patterns":[{"name":"a","expr":"("}]}`:                                      "critical_patterns: [0]: expr: missing closing )",
		`{"critical_patterns":[{"name":"a","expr":"x*"}]}`:                                     "critical_patterns: [0]: expr: the expression matches the empty text",
		`{"critical_patterns":[{"name":"a"}]}`:                                                 `missing field "expr"`,
		`{"critical_patterns":[{"expr":"x"}]}`:                                                 `missing field "name"`,
		`{"critical_patterns":[{"name":"a","expr":"x","flags":""}]}`:                           `unknown field "flags"`,
		`{"critical_patterns":[{"name":"history:a","expr":"x"}]}`:                              "critical_patterns: [0]: name: expected",
		`{"critical_patterns":[{"name":"a","expr":"x"},{"name":"a","expr":"y"}]}`:              "critical_patterns: [1]: name: stands at [0] too",
		`{` + ok + `,"allow_templates":[{"name":"a","expr":"x"},{"name":"b","expr":"[z-a]"}]}`: "allow_templates: [1]: expr: invalid character class range",
		`{` + ok + `,"max_chars":0}`:                                                           "max_chars: expected 1 to",
		`{` + ok + `,"max_chars":1.5}`:                                                         "max_chars: ",
		`{` + ok + `,"max_tokens":0}`:                                                          "max_tokens: expected 1 to 1024",
		`{` + ok + `,"temperature":3}`:                                                         "temperature: expected 0 to 2",
		`{` + ok + `,"block_message":" "}`:                                                     "block_message: expected a text that is not blank",
		`{` + ok + `,"oversize_message":""}`:                                                   "oversize_message: expected a text that is not blank",
		`{` + ok + `,"classifier_message":null}`:                                               "classifier_message: ",
		`{` + ok + `,"deterministic_fallback":1}`:                                              "deterministic_fallback: ",
		`{` + ok + `,"Max_chars":10}`:                                                          `unknown field "Max_chars"`,
		`{` + ok + `,` + ok + `}`:                                                              `repeated field "critical_patterns"`,
		`[]`:                                                                                   "expected an object",
	} {
		_, err := readConfig(abi.Raw(config))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", config, err, want)
		}
	}
}

func TestConfigSchemaIsJSON(t *testing.T) {
	if !json.Valid([]byte(configSchema)) {
		t.Error("config schema is not valid JSON")
	}
}

func TestSelfCheckCasesHold(t *testing.T) {
	t.Cleanup(func() { current = nil })
	for name, s := range map[string]*screen{
		"shipped":     load(t, nil),
		"no patterns": load(t, func(c *config) { c.deterministicFallback, c.readOnlyAllowOverride = false, false }),
	} {
		current = s
		for _, c := range cases() {
			got, err := pdk.Invoke(c.Hook, c.Request)
			if err != nil {
				t.Errorf("%s: %s: %v", name, c.Name, err)
				continue
			}
			var want, have map[string]any
			if err := json.Unmarshal(c.Expect, &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(got, &have); err != nil {
				t.Fatal(err)
			}
			for k, v := range want {
				if !cmp.Equal(have[k], v) {
					t.Errorf("%s: %s: %s = %v, want %v", name, c.Name, k, have[k], v)
				}
			}
		}
	}
}
