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
	g, err := readConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return g
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
				Entities []string `toml:"entities" json:"entities"`
			} `toml:"config"`
		} `toml:"plugins"`
	}
	if _, err := toml.Decode(block, &doc); err != nil {
		t.Fatal(err)
	}
	got := doc.Plugins["output-pii"].Config
	want := got
	want.Entities = nil
	if err := json.Unmarshal(shipped(t), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("README.md and testdata/config.json differ (-json +toml):\n%s", diff)
	}
	if all := strings.Join(got.Entities, ", "); all != entityNames() {
		t.Errorf("shipped are %s, there are %s", all, entityNames())
	}
}

func TestConfigureThroughThePdk(t *testing.T) {
	t.Cleanup(func() { current = nil })
	for config, want := range map[string]string{
		`{"entities":["US_SSN"]}`: `{"patterns":[{"id":"US_SSN","expr":"\\b\\d{3}[- .]\\d{2}[- .]\\d{4}\\b"}],"send_matches":true,"look_behind":4}`,
		`{"entities":["PERSON"]}`: `{"error":"config: entities: [0]: unknown entity, expected one of EMAIL_ADDRESS, PHONE_NUMBER, CREDIT_CARD, IBAN_CODE, IP_ADDRESS, CRYPTO, US_SSN"}`,
	} {
		got, err := pdk.Invoke(abi.HookConfigure, []byte(`{"now":0,"seed":"0","config":`+config+`}`))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", config, got, err, want)
		}
	}
}

// Clause 6.8: an unknown entity or an empty list refuses the start.
func TestConfigRefusals(t *testing.T) {
	if _, err := readConfig(abi.Raw(`{"entities":["US_SSN"]}`)); err != nil {
		t.Fatalf("the control is refused: %v", err)
	}
	for config, want := range map[string]string{
		`{}`:                                   "entities: expected at least one of EMAIL_ADDRESS",
		`{"entities":[]}`:                      "entities: expected at least one",
		`{"entities":["US_SSN","us_ssn"]}`:     "entities: [1]: unknown entity",
		`{"entities":["US_SSN","US_SSN"]}`:     "entities: [1]: stands there twice",
		`{"entities":["US_SSN"],"window":320}`: `unknown field "window"`,
		`{"entities":["US_SSN"],"mask":"*"}`:   `unknown field "mask"`,
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
