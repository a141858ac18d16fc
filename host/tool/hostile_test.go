package tool

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// hostile is a stateless server whose results are bytes of the test's choice;
// the SDK's server would not send them.
func hostile(t *testing.T, results map[string]string) Options {
	t.Helper()
	results["server/discover"] = `{"supportedVersions":["` + stateless + `"],"capabilities":{"tools":{}},"resultType":"complete","ttlMs":0,"cacheScope":"private"}`
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || results[req.Method] == "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, results[req.Method])
	}))
	t.Cleanup(ts.Close)
	return Options{URL: ts.URL, Key: testKey, Include: []string{"t"}, Attempts: 1}
}

const oneTool = `{"tools":[{"name":"other","inputSchema":5,"icons":[{}]},{"name":"t","description":null,"inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"idempotentHint":true}}],"resultType":"complete","ttlMs":60000,"cacheScope":"public"}`

// FAULTS M5: what another reader might read differently is refused at start.
func TestHostileListings(t *testing.T) {
	for listing, want := range map[string]string{
		`{"tools":[{"name":"t","inputSchema":{"type":"object"}},{"name":"t","inputSchema":{"type":"object"}}]}`:          `tool "t": the server offers it twice`,
		`{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string","type":"integer"}}}}]}`: `repeated field "type"`,
		`{"tools":[{"name":"t","name":"u","inputSchema":{"type":"object"}}]}`:                                            `repeated field "name"`,
		`{"tools":[{"name":"t","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":"yes"}}]}`:                  `tool "t": offset`,
		`{"tools":[{"name":"t"}]}`:                  `tool "t": schema: the server gives none`,
		`{"tools":[{"name":7}]}`:                    "tool: list: offset",
		`{"tools":{}}`:                              "tool: list: offset",
		`{"tools":[],"nextCursor":"again"}`:         "tool: list: the server repeats its cursor",
		`{"tools":[],"Tools":[{"name":"t"}]}`:       `tool "t": included, but the server does not offer it`,
		`{"tools":[{"name":"T","inputSchema":{}}]}`: `tool "t": included, but the server does not offer it`,
	} {
		c, err := Connect(t.Context(), hostile(t, map[string]string{"tools/list": listing}))
		if err == nil {
			_ = c.Close()
			t.Errorf("%s: it started", listing)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, want %q", listing, err, want)
		}
	}
}

// The same server with a proper listing works, so the refusals above are not
// its fault; odd results become failures and not text.
func TestHostileResults(t *testing.T) {
	for result, want := range map[string]string{
		`{"content":[{"type":"text","text":"fine"}],"resultType":"complete"}`:   "fine",
		`{"content":[{"type":"hologram","text":"x"},{"type":"<b>\n"}]}`:         "[hologram]\n[content]",
		`{"content":[{"type":"text","text":"a","text":"b"}]}`:                   "Error: the tool's result is not valid: offset 38: repeated field \"text\"",
		`{"content":[{"type":"text","text":"\ud800"}]}`:                         "Error: the tool's result is not valid: offset ",
		`{"content":[],"isError":"no"}`:                                         "Error: the tool's result is not valid: offset ",
		`{"content":"text"}`:                                                    "Error: the tool's result is not valid: offset ",
		`{"resultType":"input_required","inputRequests":{},"requestState":"s"}`: "Error: the tool asks for further input, which is not supported",
		`7`: "Error: the tool's result is not valid: offset 0",
	} {
		c := connect(t, hostile(t, map[string]string{"tools/list": oneTool, "tools/call": result}))
		text, failed := call(t, c, "t", `{}`)
		if !strings.HasPrefix(text, want) || failed != strings.HasPrefix(want, "Error: ") {
			t.Errorf("%s: got %q, %v; want %q", result, text, failed, want)
		}
	}
}
