package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// offer is an MCP server that offers these tools.
func offer(tools ...*mcp.Tool) http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "odd", Version: "1"}, nil)
	for _, tool := range tools {
		server.AddTool(tool, toolSays("{}"))
	}
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true})
}

func readOnly(name, schema string) *mcp.Tool {
	return &mcp.Tool{Name: name, Description: "d", InputSchema: json.RawMessage(schema),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
}

// 8.3: exit code 1, one reason a line on stderr that names key and reason,
// nothing on stdout, and no secret anywhere.
func TestRefusesToStart(t *testing.T) {
	const empty = `{"type":"object"}`
	get := readOnly("get_ticket", `{"type":"object","properties":{"ticket_id":{"type":"string"}}}`)
	with := func(search *mcp.Tool) http.Handler { return offer(get, search) }
	edit := func(old, new string) func(string) string {
		return func(c string) string { return replace(t, c, old, new) }
	}
	config := func(text string) func(string) string { return func(string) string { return text } }
	yes, no := true, false
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = busy.Close() }) // after the parallel tests
	for name, tc := range map[string]struct {
		setup
		unset string
		args  []string
		want  []string
	}{
		"positive control":             {},
		"secret alone is fine":         {setup: setup{env: map[string]string{"HITL_APPROVAL_SECRET": approval}}},
		"blank variables are not set":  {setup: setup{env: map[string]string{"HITL_ENABLE_INTERACTIVE": " ", "GUARDRAILS_INPUT_MAX_CHARS": ""}}},
		"no service key":               {unset: "NAT_GATEWAY_API_KEY", want: []string{"environment NAT_GATEWAY_API_KEY: expected"}},
		"blank service key":            {setup: setup{env: map[string]string{"NAT_GATEWAY_API_KEY": "  "}}, want: []string{"environment NAT_GATEWAY_API_KEY: expected"}},
		"no MCP key":                   {unset: "MCP_API_KEY", want: []string{"environment MCP_API_KEY: expected"}},
		"bad bool":                     {setup: setup{env: map[string]string{"NAT_TRACE_CAPTURE_CONTENT": "Ture"}}, want: []string{`environment NAT_TRACE_CAPTURE_CONTENT: expected one of 1, true, yes, on, 0, false, no, off, got "Ture"`}},
		"bad bool of a plugin":         {setup: setup{env: map[string]string{"GUARDRAILS_INPUT_DETERMINISTIC_FALLBACK": "y"}}, want: []string{"GUARDRAILS_INPUT_DETERMINISTIC_FALLBACK"}},
		"bad int":                      {setup: setup{env: map[string]string{"GUARDRAILS_PII_MAX_BUFFER_CHARS": "-1"}}, want: []string{"environment GUARDRAILS_PII_MAX_BUFFER_CHARS: expected a whole number"}},
		"bad int of a plugin":          {setup: setup{env: map[string]string{"GUARDRAILS_INPUT_MAX_CHARS": "1e3"}}, want: []string{"GUARDRAILS_INPUT_MAX_CHARS"}},
		"bad address":                  {setup: setup{env: map[string]string{"AGENT_BIND_ADDRESS": "localhost"}}, want: []string{"environment AGENT_BIND_ADDRESS: expected host:port"}},
		"address in use":               {setup: setup{env: map[string]string{"AGENT_BIND_ADDRESS": busy.Addr().String()}}, want: []string{"address already in use"}},
		"bad model address":            {setup: setup{env: map[string]string{"LLM_BASE_URL": "localhost:11434"}}, want: []string{"environment LLM_BASE_URL: expected an http or https URL"}},
		"bad MCP address":              {setup: setup{env: map[string]string{"TICKETS_MCP_URL": "mcp"}}, want: []string{"environment TICKETS_MCP_URL: expected an http or https URL"}},
		"no file":                      {args: []string{"--config", "gone.toml"}, want: []string{"gone.toml: expected a readable configuration file"}},
		"YAML":                         {args: []string{"--config", "config.yml"}, want: []string{"weir config export-evaluator"}},
		"not TOML":                     {setup: setup{config: config("[agent\n")}, want: []string{"agent.toml:"}},
		"unknown key":                  {setup: setup{config: edit("[server]\n", "[server]\nlisen = 1\n")}, want: []string{"unknown key [server] lisen"}},
		"unknown key of a plugin":      {setup: setup{config: edit("max_tokens = 4      ", "max_token = 4      ")}, want: []string{"plugin input-screen: configure:", "max_token"}},
		"short secret":                 {setup: setup{env: map[string]string{"HITL_APPROVAL_SECRET": "canary-short"}}, want: []string{"environment HITL_APPROVAL_SECRET: expected at least 24 characters"}},
		"TTL":                          {setup: setup{config: edit(`# token_ttl = "600s"`, `token_ttl = "59s"`)}, want: []string{"[actions.ticket_priority_change] token_ttl"}},
		"interactive alone":            {setup: setup{env: map[string]string{"HITL_ENABLE_INTERACTIVE": "true"}}, want: []string{"HITL_ENABLE_INTERACTIVE"}},
		"interactive and secret":       {setup: setup{env: map[string]string{"HITL_ENABLE_INTERACTIVE": "true", "HITL_APPROVAL_SECRET": approval}}, want: []string{"HITL_ENABLE_INTERACTIVE"}},
		"declared alone":               {setup: setup{config: edit("enabled = false", "enabled = true")}, want: []string{"HITL_APPROVAL_SECRET"}},
		"declared and secret":          {setup: setup{config: edit("enabled = false", "enabled = true"), env: map[string]string{"HITL_APPROVAL_SECRET": approval}}, want: []string{"HITL_ENABLE_INTERACTIVE"}},
		"approvals are on":             {setup: setup{config: edit("enabled = false", "enabled = true"), env: map[string]string{"HITL_APPROVAL_SECRET": approval, "HITL_ENABLE_INTERACTIVE": "1"}}},
		"bad regex":                    {setup: setup{config: edit(`'''\bAKIA[0-9A-Z]{16}\b'''`, `'''\bAKIA[0-9'''`)}, want: []string{"plugin output-secrets: configure:"}},
		"no pattern":                   {setup: setup{config: func(c string) string { return withoutPatterns(t, c) }}, want: []string{"plugin output-secrets: configure:"}},
		"unknown entity":               {setup: setup{config: edit(`"US_SSN"`, `"SHOE_SIZE"`)}, want: []string{"plugin output-pii: configure:", "entities: [6]: unknown entity, expected one of"}},
		"no module":                    {setup: setup{config: edit("# module = \"plugins/dist/input-screen.wasm\"", "module = \"gone.wasm\"\n#")}, want: []string{"plugin input-screen:", "there is no such module"}},
		"not a module":                 {setup: setup{modules: map[string][]byte{"input-screen": []byte("#!/bin/sh\n")}}, want: []string{"plugin input-screen:"}},
		"unknown mode":                 {setup: setup{config: edit(`# mode = "enforce"                #`, `mode = "look" #`)}, want: []string{"mode"}},
		"no prompt file":               {setup: setup{config: edit(`"prompts/system.md"`, `"prompts/gone.md"`)}, want: []string{"prompts/gone.md"}},
		"workflow that is no workflow": {setup: setup{config: edit(`workflow = "react"`, `workflow = "output-pii"`)}, want: []string{"output-pii"}},
		"log level":                    {setup: setup{env: map[string]string{"WEIR_LOG_LEVEL": "loud"}}, want: []string{"environment WEIR_LOG_LEVEL: expected"}},
		"MCP down":                     {setup: setup{env: map[string]string{"TICKETS_MCP_URL": "http://127.0.0.1:9/mcp"}}, want: []string{"tool: connect: the connection was refused"}},
		"MCP refuses the key":          {setup: setup{env: map[string]string{"MCP_API_KEY": "canary-other"}}, want: []string{"tool: connect: the server answered 401 and does not accept the key"}},
		"MCP moved":                    {setup: setup{desk: http.RedirectHandler("http://127.0.0.1:9/", http.StatusTemporaryRedirect)}, want: []string{"tool: connect: the server answered 307"}},
		"MCP is a web page":            {setup: setup{desk: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>canary</html>")) })}, want: []string{"tool: connect: "}},
		"tool missing":                 {setup: setup{desk: offer(get)}, want: []string{"search_tickets"}},
		"tool not read-only":           {setup: setup{desk: with(&mcp.Tool{Name: "search_tickets", InputSchema: json.RawMessage(empty), Annotations: &mcp.ToolAnnotations{DestructiveHint: &no}})}, want: []string{"search_tickets"}},
		"tool destructive":             {setup: setup{desk: with(&mcp.Tool{Name: "search_tickets", InputSchema: json.RawMessage(empty), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: &yes}})}, want: []string{"search_tickets"}},
		"schema outside the subset":    {setup: setup{desk: with(readOnly("search_tickets", `{"type":"object","properties":{"ids":{"type":"array"}}}`))}, want: []string{"search_tickets", "ids"}},
		"reserved argument":            {setup: setup{desk: with(readOnly("search_tickets", `{"type":"object","properties":{"User_ID":{"type":"string"}}}`))}, want: []string{"search_tickets", "User_ID"}},
		"override of a tool not there": {setup: setup{config: edit("[tools.mcp.overrides.get_ticket]", "[tools.mcp.overrides.drop_ticket]")}, want: []string{"drop_ticket"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env, _ := neighbours(t, tc.setup)
			delete(env, tc.unset)
			args := append([]string{"serve"}, tc.args...)
			if tc.args == nil {
				args = append(args, "--config", deployment(t, tc.config, tc.modules))
			}
			c := launch(t, env, nil, args...)
			if tc.want == nil {
				c.address(t)
				return
			}
			if code := c.wait(t, time.Minute); code != 1 || c.stdout.String() != "" {
				t.Errorf("code %d, stdout %q", code, c.stdout)
			}
			said := refusals(c.stderr.String())
			if len(said) == 0 {
				t.Fatalf("no refusal:\n%s", c.stderr)
			}
			for _, want := range tc.want {
				if !strings.Contains(strings.Join(said, "\n"), want) {
					t.Errorf("it lacks %q:\n%s", want, c.stderr)
				}
			}
			noSecrets(t, "stderr", c.stderr.String())
		})
	}
}

// refusals are the lines of the refusal; what the logger said is not.
func refusals(stderr string) (lines []string) {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "weir refused to start: ") || strings.HasPrefix(line, "  ") {
			lines = append(lines, line)
		} else if !strings.HasPrefix(line, "time=") {
			return nil
		}
	}
	return lines
}

// noSecrets looks for everything that was secret.
func noSecrets(t testing.TB, where, text string) {
	t.Helper()
	for _, secret := range []string{"canary", "Canary"} {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("%s holds a secret: …%.120s", where, text[max(0, i-60):])
		}
	}
}

func withoutPatterns(t *testing.T, config string) string {
	before, rest, ok := strings.Cut(config, "patterns = [\n  '''\\b(?:api")
	_, after, end := strings.Cut(rest, "\n]\n")
	if !ok || !end {
		t.Fatal("the patterns stand elsewhere")
	}
	return before + "patterns = []\n" + after
}

// A sloppy operator: the key of a file, a start that is interrupted, and a
// secret that is named in the wrong place.
func TestInterruptedStart(t *testing.T) {
	t.Parallel()
	waiting := make(chan struct{})
	release := make(chan struct{})
	var once sync.Once
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(waiting) })
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}))
	defer silent.Close()
	defer close(release)
	env, _ := neighbours(t, setup{env: map[string]string{"TICKETS_MCP_URL": silent.URL + "/mcp"}})
	c := launch(t, env, nil, "serve", "--config", deployment(t, nil, nil))
	select {
	case <-waiting:
	case <-time.After(hang):
		t.Fatal("it does not connect")
	}
	interrupt(t, c)
	if code := c.wait(t, hang); code != 1 || len(refusals(c.stderr.String())) == 0 {
		t.Errorf("code %d:\n%s", code, c.stderr)
	}
}

// Keys can come from files, and the last line's end is not part of them.
func TestKeysFromFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env, _ := neighbours(t, setup{})
	for _, name := range []string{"NAT_GATEWAY_API_KEY", "MCP_API_KEY"} {
		write(t, filepath.Join(dir, name), []byte(env[name]+"\n"))
		env = maps.Clone(env)
		delete(env, name)
		env[name+"_FILE"] = filepath.Join(dir, name)
	}
	c := launch(t, env, nil, "serve", "--config", deployment(t, nil, nil))
	w := &world{url: "http://" + c.address(t)}
	if s := w.ask(t, user("Show me my open tickets.")); !strings.Contains(s.text(), "TKT-1001") {
		t.Errorf("got %q", s.text())
	}
}

// toolSays is a tool that always answers this text.
func toolSays(text string) mcp.ToolHandler {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
	}
}
