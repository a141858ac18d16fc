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

// shipped is the configuration that agent.toml ships.
func shipped(t testing.TB) abi.Raw {
	t.Helper()
	raw, err := os.ReadFile("testdata/config.json")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func load(t testing.TB, config abi.Raw) *guard {
	t.Helper()
	c, err := readConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &guard{config: *c}
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
			Config struct {
				Notice   string   `toml:"notice" json:"notice"`
				Patterns []string `toml:"patterns" json:"patterns"`
			} `toml:"config"`
		} `toml:"plugins"`
	}
	if _, err := toml.Decode(block, &doc); err != nil {
		t.Fatal(err)
	}
	got := doc.Plugins["output-secrets"].Config
	want := got
	want.Patterns = nil
	if err := json.Unmarshal(shipped(t), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("README.md and testdata/config.json differ (-json +toml):\n%s", diff)
	}
}

func TestConfigureThroughThePdk(t *testing.T) {
	t.Cleanup(func() { current = nil })
	for config, want := range map[string]string{
		`{"patterns":["x"]}`:              `{"patterns":[{"id":"secret:0","expr":"(?i)x","bound":256,"minimal":true}],"send_matches":true,"look_behind":4}`,
		`{"patterns":["x"],"max_span":9}`: `{"patterns":[{"id":"secret:0","expr":"(?i)x","bound":9,"minimal":true}],"send_matches":true,"look_behind":4}`,
		`{"patterns":["(?=a)"]}`:          `{"error":"config: patterns: [0]: invalid or unsupported Perl syntax"}`,
		`{}`:                              `{"error":"config: patterns: expected at least one"}`,
		`{"patterns":["x"],"windw":1}`:    `{"error":"config: offset 18: unknown field \"windw\""}`,
	} {
		got, err := pdk.Invoke(abi.HookConfigure, []byte(`{"now":0,"seed":"0","config":`+config+`}`))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", config, got, err, want)
		}
	}
}

// Clause 6.8: a pattern that does not compile or an empty list refuses the start.
func TestConfigRefusals(t *testing.T) {
	if _, err := readConfig(abi.Raw(`{"patterns":["x"]}`)); err != nil {
		t.Fatalf("the control is refused: %v", err)
	}
	for config, want := range map[string]string{
		`{"patterns":[]}`:                   "patterns: expected at least one",
		`{"patterns":"x"}`:                  "patterns: ",
		`{"patterns":["x","a)("]}`:          "patterns: [1]: unexpected )",
		`{"patterns":["x?"]}`:               "patterns: [0]: the expression matches the empty text",
		`{"patterns":["x",1]}`:              "patterns: ",
		`{"patterns":["x"],"notice":" "}`:   "notice: expected",
		`{"patterns":["x"],"max_span":0}`:   "max_span: expected 1 to 1024",
		`{"patterns":["x"],"max_span":1e3}`: "max_span: ",
		`{"patterns":["x"],"window":320}`:   `unknown field "window"`,
		`{"patterns":["x"],"Notice":"n"}`:   `unknown field "Notice"`,
	} {
		_, err := readConfig(abi.Raw(config))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", config, err, want)
		}
	}
}

func TestSelfCheckCasesHold(t *testing.T) {
	t.Cleanup(func() { current = nil })
	current = load(t, shipped(t))
	for _, c := range cases() {
		got, err := pdk.Invoke(c.Hook, c.Request)
		if err != nil || string(got) != string(c.Expect) {
			t.Errorf("%s: %s, %v; want %s", c.Name, got, err, c.Expect)
		}
	}
	if !json.Valid([]byte(configSchema)) {
		t.Error("config schema is not valid JSON")
	}
}
