package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"weir/host/contract/stream/consumer"
)

// S6: text is on its way while the model is still speaking, in many fragments,
// and the step of a tool comes before the model's next word.
func TestDeltasArriveProgressively(t *testing.T) {
	const sentence = "Sentence number %03d of a long and entirely harmless answer about tickets. "
	say := make(chan string)
	w := shared(t, &model{agent: func(c *chat, n int) {
		if n == 0 {
			c.call(0, "search_tickets", `{"status":"open"}`).end("tool_calls")
			return
		}
		for text := range say {
			c.text(text)
		}
		c.end("stop")
	}}, nil)
	b := blocksOf(w.open(t.Context(), t, user("Show me my open tickets.")))
	b.until(t, `"type":"TOOL_END"`) // the model has not said a word yet
	var want, got strings.Builder
	next := 0
	speak := func() {
		text := fmt.Sprintf(sentence, next)
		next++
		want.WriteString(text)
		say <- text
	}
	fragments := 0
	for next < 120 {
		// No sentence begins anything that a guard would wait for, so all but
		// the end of each comes before the next is said.
		speak()
		for got.Len() < want.Len()-40 {
			got.WriteString(answer(t, b.next(t)))
			fragments++
		}
	}
	close(say)
	for {
		block := b.next(t)
		if strings.Contains(block, `"type":"WORKFLOW_END"`) {
			break
		}
		if strings.HasPrefix(block, "data: ") {
			got.WriteString(answer(t, block))
			fragments++
		}
	}
	if got.String() != want.String() || fragments <= 20 {
		t.Errorf("%d fragments, %d bytes of %d", fragments, got.Len(), want.Len())
	}
}

func answer(t *testing.T, block string) string {
	t.Helper()
	text := consumer.ReadPage([]byte(block + "\n\n")).Text
	if !strings.HasPrefix(block, "data: ") || text == "" {
		t.Fatalf("expected a fragment, got %.200q", block)
	}
	return text
}

// script is a model that gives the text under the question's number, cut where
// the number says.
type script struct{ text string }

func (s script) model(cut func(n int) []int) *model {
	m := &model{}
	m.agent = func(c *chat, n int) {
		from := 0
		for _, at := range append(cut(n), len(s.text)) {
			if at > from {
				// Bytes and not characters: a provider that cuts a character in
				// two sends both halves as they are.
				c.raw(`data: {"choices":[{"index":0,"delta":{"content":"` + escape(s.text[from:at]) + `"},"finish_reason":null}]}` + "\n\n")
			}
			from = at
		}
		c.end("stop")
	}
	return m
}

// escape writes JSON with every character as it is, except where it cannot be.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text)
}

// S1, S2: a secret, an e-mail and a card number are cut or masked wherever the
// stream is split, through the real modules.
func TestSecretsSplitAnywhere(t *testing.T) {
	const notice = "I can't share the rest of that response because it may contain sensitive information."
	upstream := &swap{}
	w := shared(t, upstream, nil)
	for name, tc := range map[string]struct {
		before, secret, after string
		want                  string
		never                 []string
	}{
		"secret":      {"Zoë asked — the log says ", "api_key = \"DEMOSECRET1234567890\"", " and more.", "Zoë asked — the log says " + notice, []string{"DEM", "api_key"}},
		"private key": {"It is ", "-----BEGIN RSA PRIVATE KEY-----", "\nMIIEow", "It is " + notice, []string{"BEGIN", "MIIE"}},
		"e-mail":      {"Write to Zoë, ", "renee.castillo@example.com", ", today — 日本語.", "Write to Zoë, <EMAIL_ADDRESS>, today — 日本語.", []string{"castillo", "renee"}},
		"card":        {"Paid with ", "4111 1111 1111 1111", ".", "Paid with <CREDIT_CARD>.", []string{"4111", "1111 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			whole := tc.before + tc.secret + tc.after
			var cuts [][]int
			for at := 1; at < len(whole); at++ {
				inside := at > len(tc.before) && at < len(tc.before)+len(tc.secret)
				if utf8.RuneStart(whole[at]) && (inside || at%5 == 0) && (at%2 == 0 || !testing.Short()) {
					cuts = append(cuts, []int{at})
				}
			}
			var each []int
			for at := range whole {
				each = append(each, at)
			}
			cuts = append(cuts, nil, each)
			upstream.set(script{whole}.model(func(n int) []int { return cuts[n] }))
			for n := range cuts {
				s := w.ask(t, user("What does the log say?"))
				if s.text() != tc.want {
					t.Errorf("cut at %v: %q, want %q", cuts[n], s.text(), tc.want)
				}
				for _, never := range tc.never {
					if bytes.Contains(s.raw, []byte(never)) {
						t.Errorf("cut at %v: %q is in the stream", cuts[n], never)
					}
				}
			}
		})
	}
}

// S3: what no guard matches arrives byte for byte, also what consumers would
// take for something else (10.5).
func TestCleanTextIsUntouched(t *testing.T) {
	texts := []string{
		"100", "true", "null", "20260920", `"quoted"`, "{}", `{"value":"x"}`, `[1,2,3]`, "  [ ]  ", `{"a":`,
		"event: interaction_required", "data: {\"value\":\"x\"}", "[DONE]", "data:", ": keep-alive",
		"a\u0085b\u2028c\u2029d\u000be", "\ufeffbom", "line\nline\n\nline\r\n\r\nend", "tab\tnul\x00bell\x07",
		"content='x' content=\"y\" ChoiceDelta(content='z')", "intermediate_data: {}", "😀👩‍👩‍👧‍👦 ë é", "<b>&amp;</b>",
		"std::vector 14:05:00 2026-09-15T09:20:00Z TKT-1001 ORD-5510 EVT-1402 $4,250.75, 4111 1111 1111 1112, 000-12-3456",
		strings.Repeat("x", 5000), strings.Repeat("日本語", 700), " ", "\n",
	}
	m := &model{}
	m.agent = func(c *chat, n int) {
		for i, r := range []rune(texts[n/2]) {
			if n%2 == 0 { // the whole text at once, then each character alone
				c.text(texts[n/2])
				break
			}
			if c.text(string(r)); i > 300 {
				c.text(string([]rune(texts[n/2])[i+1:]))
				break
			}
		}
		c.end("stop")
	}
	w := shared(t, m, nil)
	for n := range 2 * len(texts) {
		s := w.ask(t, user("What is it?"))
		if want := texts[n/2]; s.text() != want || s.page.Text != want || s.eval.Text != want || s.page.Err+s.eval.Err != "" {
			t.Errorf("%.40q: sent %.40q, page %.40q %s, evaluator %.40q %s", want, s.text(), s.page.Text, s.page.Err, s.eval.Text, s.eval.Err)
		}
		if d := s.decision(t, outputDecision); d["outcome"] != "passed" {
			t.Errorf("%.40q: %v", texts[n/2], d)
		}
	}
}

// S9, M2: an upstream stream as odd as SSE and the API allow. Two tool calls
// arrive interleaved, text stands beside them, and the bytes are cut anywhere.
func TestOddUpstreamStream(t *testing.T) {
	m := &model{agent: func(c *chat, n int) {
		if n == 0 {
			for _, part := range []string{
				"\ufeff: hello\r\n\r\n",
				"event: message\r\ndata:{\"choices\":[]}\r\n\r\n",
				"id: 7\rdata: {\"choices\":\rdata: [{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Look\"}}]}\r\r",
				`data: {"choices":[{"index":0,"delta":{"content":"ing … ","reasoning_content":"SECRETTHOUGHT"}}]}` + "\n\n",
				`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"get_ticket","arguments":"{\"ticket"}}]}}]}` + "\n\n",
				`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"get_ticket","arguments":""}}]}}]}` + "\n\n",
				`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"_id\":\"TKT-1001\"}"}},{"index":1,"function":{"arguments":"{\"ticket_id\":\"TKT-1002\"}"}}]}}]}` + "\n\n",
				`data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n",
				`data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1}}` + "\n\n",
				`data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n",
			} {
				for i := range len(part) {
					c.raw(part[i : i+1])
				}
			}
			return
		}
		c.text("Done: ë.").end("stop")
	}}
	s := shared(t, m, nil).ask(t, user("Compare the two."))
	if s.text() != "Looking … Done: ë." || s.count("TOOL_END") != 2 || bytes.Contains(s.raw, []byte("SECRETTHOUGHT")) {
		t.Errorf("got %q, %d tools", s.text(), s.count("TOOL_END"))
	}
	if in := string(s.eval.ToolCalls[0].Payload.Data.Input) + string(s.eval.ToolCalls[1].Payload.Data.Input); in != `{"ticket_id":"TKT-1001"}{"ticket_id":"TKT-1002"}` {
		t.Errorf("the calls got %s", in)
	}
	if !bytes.Contains(*m.last.Load(), []byte(`Damaged item on arrival`)) {
		t.Errorf("the model did not see the second result: %.300s", *m.last.Load())
	}
}

// S10: silence is filled with comments that both consumers ignore.
func TestKeepAlive(t *testing.T) {
	release := make(chan struct{})
	w := start(t, setup{
		config: func(c string) string { return replace(t, c, `# keep_alive = "15s"`, `keep_alive = "20ms"`) },
		model: &model{agent: func(c *chat, _ int) {
			<-release
			c.text("late").end("stop")
		}},
	})
	resp := w.open(t.Context(), t, user("Hello"))
	b := blocksOf(resp)
	for range 3 {
		b.until(t, ": keep-alive")
	}
	close(release)
	rest, err := io.ReadAll(b.r)
	if err != nil || !strings.Contains(string(rest), `{"value":"late"}`) {
		t.Errorf("%v, %.300s", err, rest)
	}
	if p := consumer.ReadPage(rest); p.Text != "late" || p.Err != "" {
		t.Errorf("the page shows %+v", p)
	}
}

// M5: numbers keep their text from the model to the tool and from the tool to
// the model and the stream.
func TestNumbersKeepTheirText(t *testing.T) {
	const args = `{"status":"open","limit":9007199254740993}`
	m := &model{agent: func(c *chat, n int) {
		if n == 0 {
			c.call(0, "search_tickets", args).end("tool_calls")
			return
		}
		c.text("ok").end("stop")
	}}
	s := shared(t, m, nil).ask(t, user("Hello"))
	if got := string(s.eval.ToolCalls[0].Payload.Data.Input); got != args {
		t.Errorf("the step shows %s", got)
	}
	if !bytes.Contains(*m.last.Load(), []byte("9007199254740993")) {
		t.Errorf("the model reads %s", *m.last.Load())
	}
}

// HEAD and GET of the route are no stream, and a stream is not compressed.
func TestMethodsOfTheRoute(t *testing.T) {
	w := shared(t, nil, nil)
	for method, want := range map[string]int{"GET": 405, "HEAD": 405, "PUT": 405, "OPTIONS": 405, "DELETE": 405} {
		req := w.request(t.Context(), t, user("x"))
		req.Method = method
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if text := drain(t, resp); resp.StatusCode != want || method != "HEAD" && !strings.HasPrefix(text, `{"error":`) {
			t.Errorf("%s: %d %s", method, resp.StatusCode, text)
		}
	}
	req := w.request(t.Context(), t, user("Show me my open tickets."))
	req.Header.Set("Accept-Encoding", "gzip, br")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if text := drain(t, resp); resp.Header.Get("Content-Encoding") != "" || !strings.HasPrefix(text, "intermediate_data: ") || resp.StatusCode != http.StatusOK {
		t.Errorf("%v %.80q", resp.Header, text)
	}
}
