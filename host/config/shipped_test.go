package config

import (
	"errors"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/abi/strictjson"
)

const shippedPath = "../../agent.toml"

func shipped(t *testing.T) *Config {
	t.Helper()
	c, err := Load(Source{Path: shippedPath, Env: keys().look})
	if err != nil {
		t.Fatalf("the shipped agent.toml: %v", err)
	}
	return c
}

func TestShippedLoads(t *testing.T) {
	c := shipped(t)
	var guards []string
	for _, g := range c.Guards() {
		guards = append(guards, g.Name)
	}
	if want := []string{"input-screen", "output-secrets", "output-pii", "tool-injection"}; !slices.Equal(guards, want) {
		t.Errorf("guards = %q, want %q", guards, want)
	}
	if a, ok := c.Actions["ticket_priority_change"]; !ok || a.Enabled {
		t.Errorf("the shipped agent must declare ticket_priority_change with enabled = false, got %+v, %v", a, ok)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("warnings: %q", c.Warnings)
	}
}

// keyPath is one key that agent.toml may have: the table as a pattern, then
// the key.
type keyPath struct{ table, key string }

// knownKeys walks the Config's type the way the decoder does.
func knownKeys(t reflect.Type, table string) []keyPath {
	var out []keyPath
	for name, index := range fieldsOf(t) {
		f := t.FieldByIndex(index).Type
		sub := strings.TrimPrefix(table+"."+name, ".")
		switch {
		case f == reflect.TypeFor[Plugins]():
			out = append(out, knownKeys(f, sub)...)
			out = append(out, knownKeys(reflect.TypeFor[Plugin](), sub+".*")...)
		case f == reflect.TypeFor[Prompts]():
			out = append(out, keyPath{sub, SystemPrompt})
		case f == reflect.TypeFor[VariantPlugins]():
			// its tables are those of [plugins]
		case f.Kind() == reflect.Map && f.Elem() == reflect.TypeFor[Binding]():
			// its members stand in inline tables
		case f.Kind() == reflect.Map:
			out = append(out, knownKeys(f.Elem(), sub+".*")...)
		case f.Kind() == reflect.Struct:
			out = append(out, knownKeys(f, sub)...)
		case f.Kind() == reflect.Slice && f.Elem().Kind() == reflect.Struct:
			out = append(out, knownKeys(f.Elem(), sub)...)
		default:
			out = append(out, keyPath{table, name})
		}
	}
	return out
}

// agent.toml is the reference: every key stands in it, set or commented out.
func TestShippedIsComplete(t *testing.T) {
	data, err := os.ReadFile(shippedPath)
	if err != nil {
		t.Fatal(err)
	}
	tables := tablesOf(string(data))
	known := knownKeys(reflect.TypeFor[Config](), "")
	if len(known) < 60 {
		t.Fatalf("only %d known keys: the walk is broken", len(known))
	}
	for _, k := range known {
		pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(k.table), `\*`, `[a-z_-]+`) + "$")
		line := regexp.MustCompile(`(?m)^(# )?` + regexp.QuoteMeta(k.key) + ` = `)
		found := false
		for name, body := range tables {
			found = found || pattern.MatchString(name) && line.MatchString(body)
		}
		if !found {
			t.Errorf("[%s] %s stands nowhere in agent.toml", k.table, k.key)
		}
	}
}

// A key that is commented out shows its default: with all of them in force the
// configuration is the same.
func TestCommentedKeysAreDefaults(t *testing.T) {
	data, err := os.ReadFile(shippedPath)
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`(?m)^# ([a-z_]+ = )`).ReplaceAllString(string(data), "$1")
	// The one example that is no default stands under the key that it shows.
	all = strings.Replace(all, "base_url = \"http://guard-model:8000/v1\"\n", "", 1)
	dir := t.TempDir()
	if err := os.CopyFS(dir+"/prompts", os.DirFS("../../prompts")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "agent.toml", all)
	c, err := Load(Source{Path: dir + "/agent.toml", Env: keys().look})
	if err != nil {
		t.Fatal(err)
	}
	want := shipped(t)
	if string(c.Policy()) != string(want.Policy()) {
		t.Errorf("policy with every key in force:\n%s\nas shipped:\n%s", c.Policy(), want.Policy())
	}
	for name, pair := range map[string][2]any{
		"server":    {c.Server, want.Server},
		"model":     {c.Model, want.Model},
		"tools":     {c.Tools, want.Tools},
		"store":     {c.Store, want.Store},
		"telemetry": {c.Telemetry, want.Telemetry},
		"guard":     {c.Guard, want.Guard},
		"actions":   {c.Actions, want.Actions},
		"defaults":  {c.Plugins.Defaults, want.Plugins.Defaults},
		"lock":      {c.Plugins.Lock, want.Plugins.Lock},
		"admin":     {c.Admin, want.Admin},
		"reload":    {c.Reload, want.Reload},
		"approvals": {c.Approvals, want.Approvals},
		"run":       {c.Run, want.Run},
		"registry":  {c.Registry, want.Registry},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("[%s] with every key in force: %+v, as shipped: %+v", name, pair[0], pair[1])
		}
	}
}

// tablesOf cuts a document at its headers.
func tablesOf(text string) map[string]string {
	tables := map[string]string{}
	header := regexp.MustCompile(`(?m)^\[+([^\]]+)\]+$`)
	at := header.FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		tables[text[m[2]:m[3]]] += text[m[1]:end]
	}
	return tables
}

// agent-service.md 8.1: the names that every runtime of the contract reads.
var contractVariables = strings.Fields(`
NAT_GATEWAY_API_KEY MCP_API_KEY TICKETS_MCP_URL LLM_BASE_URL LLM_API_KEY LLM_MODEL LLM_GUARD_MODEL
LLM_REASONING_EFFORT LLM_GUARD_REASONING_EFFORT HITL_APPROVAL_SECRET HITL_ENABLE_INTERACTIVE
HITL_INTERACTION_TIMEOUT_SECONDS HITL_STRICT_INTERACTION_OWNERSHIP GUARDRAILS_INPUT_DETERMINISTIC_FALLBACK
GUARDRAILS_INPUT_READ_ONLY_ALLOW_OVERRIDE GUARDRAILS_INPUT_BLOCK_MESSAGE GUARDRAILS_INPUT_MAX_CHARS
GUARDRAILS_INPUT_OVERSIZE_MESSAGE GUARDRAILS_TRACE_CAPTURE_CONTENT GUARDRAILS_TRACE_CAPTURE_RAW_OUTPUT
GUARDRAILS_TRACE_MAX_CHARS GUARDRAILS_PII_MAX_BUFFER_CHARS GUARDRAILS_RAIL_POOL_SIZE
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT OTEL_COLLECTOR_TRACES_ENDPOINT OTEL_SERVICE_NAME DEPLOYMENT_ENVIRONMENT
NAT_TRACE_CAPTURE_CONTENT NAT_TRACE_CONTENT_MAX_CHARS OTEL_TRACE_USER_ID AGENT_TRACE_CAPTURE_MODEL_CONTENT
AGENT_BUILD_COMMIT AGENT_CONFIG_PATH AGENT_BIND_ADDRESS RUST_LOG`)

func TestEveryVariableOfTheContractIsKnown(t *testing.T) {
	known := map[string]bool{}
	for _, v := range Variables() {
		if known[v.Name] {
			t.Errorf("%s stands twice in the table", v.Name)
		}
		known[v.Name] = true
		if v.About == "" || (v.set == nil) != (v.Kind == KindIgnored || v.Kind == KindDirect) {
			t.Errorf("%s: a variable has a sentence, and a setter unless it is ignored or read elsewhere", v.Name)
		}
	}
	for _, p := range shipped(t).Plugins.List {
		for _, b := range p.Env {
			known[b.Variable] = true
		}
	}
	for _, name := range contractVariables {
		if !known[name] {
			t.Errorf("%s is read nowhere", name)
		}
	}
}

// Every key that a variable claims to overrule exists, and agent.toml names the
// variable.
func TestVariablesNameRealKeys(t *testing.T) {
	data, err := os.ReadFile(shippedPath)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, k := range knownKeys(reflect.TypeFor[Config](), "") {
		keys = append(keys, k.table+"."+k.key)
	}
	for _, v := range Variables() {
		if v.Key == "" {
			continue
		}
		if !slices.Contains(keys, v.Key) {
			t.Errorf("%s overrules %s, which does not exist", v.Name, v.Key)
		}
		if !strings.Contains(string(data), v.Name) {
			t.Errorf("agent.toml does not name %s", v.Name)
		}
	}
}

// The plugins' own tests run with the configuration that is shipped.
func TestPluginsAreTestedAsShipped(t *testing.T) {
	compared := 0
	for _, p := range shipped(t).Plugins.List {
		data, err := os.ReadFile("../../plugins/" + p.Name + "/testdata/config.json")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		want, err := strictjson.Canonical(nil, data)
		if err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		if d := cmp.Diff(string(want), string(p.Config)); d != "" {
			t.Errorf("[plugins.%s.config] differs from the plugin's testdata/config.json (-testdata +agent.toml):\n%s", p.Name, d)
		}
		compared++
	}
	if compared < 3 {
		t.Errorf("only %d plugins have a testdata/config.json", compared)
	}
}
