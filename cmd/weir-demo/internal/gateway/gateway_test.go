package gateway

import (
	"bytes"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"weir/cmd/weir-demo/internal/gateway/gatewaytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "it's a key"

func play(t *testing.T, variant string) (failures int, output string) {
	t.Helper()
	var asked atomic.Int64
	ts := httptest.NewServer(gatewaytest.Agent(variant, key, func() { asked.Add(1) }))
	defer ts.Close()
	var out bytes.Buffer
	g := New(Options{Address: ts.Listener.Addr().String(), Key: key, Out: &out,
		ModelCalls: func() int { return int(asked.Load()) }})
	defer g.Close()
	return g.Play(t.Context(), Demo()), out.String()
}

// An agent that does everything right passes, and what it did can be read.
func TestGoodAgent(t *testing.T) {
	failures, out := play(t, gatewaytest.Good)
	if failures != 0 || strings.Contains(out, "✗") || strings.Count(out, "✓") != 5 {
		t.Fatalf("%d failures:\n%s", failures, out)
	}
	for _, want := range []string{
		"── 1 of 4  List the open tickets ──",
		"user      Show me my open tickets.",
		`call      search_tickets { "status" : "open" }`,
		"guardrail_input_demo_decision: blocked (llm_and_deterministic_block)",
		"masked 1 EMAIL_ADDRESS, 1 IBAN_CODE, 1 PHONE_NUMBER",
		"answer    TKT-1001 TKT-1002 TKT-1003\n            TKT-1004 TKT-1005 urgent\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("colours without being asked")
	}
}

// Each way in which an agent can be wrong is found and said.
func TestBadAgents(t *testing.T) {
	for variant, want := range map[string]string{
		gatewaytest.Leaky:     `✗ "DEMOSECRET" stands in the stream`,
		gatewaytest.LeakyStep: `✗ "DEMOSECRET" stands in the stream`,
		gatewaytest.Unmasked:  `✗ "alice.guardrail" stands in the stream`,
		gatewaytest.Eager:     "✗ search_tickets started before the input decision",
		gatewaytest.Lax:       "✗ the input decision is passed, expected blocked",
		gatewaytest.Broken:    "✗ the run failed: The agent run failed.",
		gatewaytest.Torn:      "✗ the stream broke: ",
		gatewaytest.Silent:    "✗ there is no input decision",
	} {
		failures, out := play(t, variant)
		if failures == 0 || !strings.Contains(out, want) {
			t.Errorf("%s: %d failures, want %q in:\n%s", variant, failures, want, out)
		}
	}
}

func TestRefusedAndUnreachable(t *testing.T) {
	ts := httptest.NewServer(gatewaytest.Agent(gatewaytest.Good, "another key", func() {}))
	var out bytes.Buffer
	g := New(Options{Address: ts.Listener.Addr().String(), Key: key, Out: &out})
	defer g.Close()
	if g.Play(t.Context(), Demo()[:1]) != 1 || !strings.Contains(out.String(), "the agent answered 401") {
		t.Error(out.String())
	}
	ts.Close()
	if g.Play(t.Context(), Demo()[:1]) != 1 || !strings.Contains(out.String(), "the agent service is unavailable") {
		t.Error(out.String())
	}
}

// What a model or a tool writes cannot drive the terminal.
func TestPrintable(t *testing.T) {
	if got := printable("a\x1b[31m\u009bb\tc\nd\r"); got != "a·[31m·b\tc\nd·" {
		t.Errorf("%q", got)
	}
}

// The line of --serve works as pasted, whatever is in the key.
func TestCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("there is no curl")
	}
	ts := httptest.NewServer(gatewaytest.Agent(gatewaytest.Good, key, func() {}))
	defer ts.Close()
	g := New(Options{Address: ts.Listener.Addr().String(), Key: key})
	defer g.Close()
	line := strings.Replace(g.Curl("Show me my open tickets."), "curl", curl+" -sS", 1)
	out, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput()
	if err != nil || !strings.Contains(string(out), `data: {"value":"TKT-1001 TKT-1002"}`) {
		t.Errorf("%v: %s", err, out)
	}
}

// FuzzTranscript: no stream makes the reader fall over.
func FuzzTranscript(f *testing.F) {
	f.Add("intermediate_data: {\"id\":\"a\",\"type\":\"TOOL_END\",\"payload\":{\"data\":{\"output\":1}}}\n\ndata: {\"value\":\"x\"}\n\n{\"error\":\"x\"}\n\n")
	f.Add("data: 1\n\n: ping\n\ndata:")
	f.Add("event: interaction_required\ndata: {\"execution_id\":\"e\",\"interaction_id\":\"i\",\"prompt\":{\"input_type\":\"radio\",\"options\":[{}]}}\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		seen := &transcript{}
		var out bytes.Buffer
		if err := seen.read(strings.NewReader(stream), &printer{out: &out}); err == nil && seen.raw.String() != stream {
			t.Error("bytes are lost")
		}
		_ = Demo()[0].Turns[0].Expect.check(seen)
	})
}
