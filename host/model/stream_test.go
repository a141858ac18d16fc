package model

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/abi"
)

// oddStreams are streams that are replies all the same (FAULTS M2, S9).
var oddStreams = []struct {
	name   string
	stream string
	want   Reply
}{
	{
		name:   "plain",
		stream: events(`{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`, content("Hel"), content("lo"), finish("stop"), `[DONE]`),
		want:   Reply{Text: "Hello", FinishReason: "stop"},
	},
	{
		name:   "M2: empty and missing choices, usage-only chunk",
		stream: events(`{"choices":[]}`, `{"id":"x"}`, `{"choices":null}`, content("Hi"), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}`, `[DONE]`),
		want:   Reply{Text: "Hi", FinishReason: "stop", Usage: Usage{7, 2}},
	},
	{
		name: "M2: two tool calls interleaved",
		stream: events(
			called(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`),
			called(`{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{\"y\""}}`),
			called(`{"index":0,"function":{"arguments":"{\"x\":"}}`),
			called(`{"index":1,"function":{"arguments":":2}"}},{"index":0,"function":{"arguments":"1}"}}`),
			finish("tool_calls"), `[DONE]`),
		want: Reply{ToolCalls: calls("a", "f", `{"x":1}`, "b", "g", `{"y":2}`), FinishReason: "tool_calls"},
	},
	{
		name: "M2: index missing, ids tell the calls apart",
		stream: events(
			called(`{"id":"a","function":{"name":"f","arguments":"{"}}`), called(`{"id":"b","function":{"name":"g","arguments":"{"}}`),
			called(`{"id":"a","function":{"arguments":"}"}}`), called(`{"id":"b","function":{"arguments":"}"}}`), finish("tool_calls")),
		want: Reply{ToolCalls: calls("a", "f", `{}`, "b", "g", `{}`), FinishReason: "tool_calls"},
	},
	{
		name: "M2: index missing after the first part",
		stream: events(
			called(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`), called(`{"function":{"arguments":"}"}}`), finish("tool_calls")),
		want: Reply{ToolCalls: calls("a", "f", `{}`), FinishReason: "tool_calls"},
	},
	{
		name: "M2: one index for every call",
		stream: events(
			called(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`),
			called(`{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":2}"}}`), finish("tool_calls")),
		want: Reply{ToolCalls: calls("a", "f", `{"x":1}`, "b", "f", `{"x":2}`), FinishReason: "tool_calls"},
	},
	{
		name: "M2: one index and no ids",
		stream: events(
			called(`{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}`),
			called(`{"index":0,"function":{"name":"f","arguments":"{\"x\":2}"}}`),
			called(`{"index":0,"function":{"name":"g","arguments":"{}"}}`), finish("tool_calls")),
		want: Reply{ToolCalls: calls("made", "f", `{"x":1}`, "made", "f", `{"x":2}`, "made", "g", `{}`), FinishReason: "tool_calls"},
	},
	{
		name:   "M2: all calls in one chunk, nothing numbered",
		stream: events(called(`{"function":{"name":"f"}},{"function":{"name":"f"}}`), finish("tool_calls")),
		want:   Reply{ToolCalls: calls("made", "f", "", "made", "f", ""), FinishReason: "tool_calls"},
	},
	{
		name: "M2: two calls with one id",
		stream: events(
			called(`{"index":0,"id":"f","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"f","function":{"name":"f","arguments":"{}"}}`), finish("tool_calls")),
		want: Reply{ToolCalls: calls("f", "f", `{}`, "made", "f", `{}`), FinishReason: "tool_calls"},
	},
	{
		name: "name and id repeated in every part",
		stream: events(
			called(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`),
			called(`{"index":0,"id":"a","function":{"name":"f","arguments":":1"}}`),
			called(`{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}`), finish("tool_calls")),
		want: Reply{ToolCalls: calls("a", "f", `{"x":1}`), FinishReason: "tool_calls"},
	},
	{
		name: "another id in every part",
		stream: events(
			called(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`), called(`{"index":0,"id":"b","function":{"arguments":"}"}}`), finish("tool_calls")),
		want: Reply{ToolCalls: calls("a", "f", `{}`), FinishReason: "tool_calls"},
	},
	{
		name: "name in pieces, an empty part at the end",
		stream: events(
			called(`{"index":0,"id":"a","function":{"name":"get_"}}`), called(`{"index":0,"function":{"name":"ticket"}}`),
			called(`{"index":0,"function":{"arguments":"{}"}}`), called(`{"index":1}`), finish("tool_calls")),
		want: Reply{ToolCalls: calls("a", "get_ticket", `{}`), FinishReason: "tool_calls"},
	},
	{
		name:   "arguments as an object keep their text",
		stream: events(called(`{"index":0,"id":"a","function":{"name":"f","arguments":{"n": 9007199254740993}}}`), finish("tool_calls")),
		want:   Reply{ToolCalls: calls("a", "f", `{"n": 9007199254740993}`), FinishReason: "tool_calls"},
	},
	{
		name:   "M2: text and a tool call in one turn",
		stream: events(content("Let me look."), called(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), finish("tool_calls")),
		want:   Reply{Text: "Let me look.", ToolCalls: calls("a", "f", `{}`), FinishReason: "tool_calls"},
	},
	{
		name:   "M2: two finish reasons; the first counts",
		stream: events(content("a"), finish("tool_calls"), finish("stop"), `[DONE]`),
		want:   Reply{Text: "a", FinishReason: "tool_calls"},
	},
	{
		name: "2.12: reasoning is dropped, content may be null or parts",
		stream: events(`{"choices":[{"delta":{"reasoning_content":"hm","content":null}}]}`, `{"choices":[{"delta":{"reasoning":"hm"}}]}`,
			`{"choices":[{"delta":{"content":[{"type":"thinking","text":"hm"},{"type":"text","text":"o"},7]}}]}`, content("k"), finish("stop")),
		want: Reply{Text: "ok", FinishReason: "stop"},
	},
	{
		name:   "a refusal is text",
		stream: events(`{"choices":[{"delta":{"content":null,"refusal":"No."}}]}`, finish("stop")),
		want:   Reply{Text: "No.", FinishReason: "stop"},
	},
	{
		name:   "only the first choice",
		stream: events(`{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}`, finish("stop")),
		want:   Reply{Text: "a", FinishReason: "stop"},
	},
	{
		name:   "finish reasons length and content_filter are replies",
		stream: events(content("cut"), finish("length")),
		want:   Reply{Text: "cut", FinishReason: "length"},
	},
	{
		name:   "nothing to say",
		stream: events(finish("stop"), `[DONE]`),
		want:   Reply{FinishReason: "stop"},
	},
	{
		name:   "[DONE] without a finish reason",
		stream: events(content("a"), `[DONE]`),
		want:   Reply{Text: "a"},
	},
	{
		name:   "words after [DONE]",
		stream: events(content("a"), finish("stop"), `[DONE]`, content("b"), `garbage`),
		want:   Reply{Text: "a", FinishReason: "stop"},
	},
	{
		name:   "S9: CRLF",
		stream: strings.ReplaceAll(events(content("a"), finish("stop"), `[DONE]`), "\n", "\r\n"),
		want:   Reply{Text: "a", FinishReason: "stop"},
	},
	{
		name:   "S9: lone CR",
		stream: strings.ReplaceAll(events(content("a"), content("b"), finish("stop"), `[DONE]`), "\n", "\r"),
		want:   Reply{Text: "ab", FinishReason: "stop"},
	},
	{
		name:   "S9: no space after the colon",
		stream: strings.ReplaceAll(events(content("a"), finish("stop"), `[DONE]`), "data: ", "data:"),
		want:   Reply{Text: "a", FinishReason: "stop"},
	},
	{
		name:   "S9: several data lines are one chunk",
		stream: "data: {\"choices\":[{\ndata: \"delta\":{\"content\":\"a\"},\ndata:\"finish_reason\":\"stop\"}]}\n\n",
		want:   Reply{Text: "a", FinishReason: "stop"},
	},
	{
		name:   "S9: comments, other fields, BOM, blank lines",
		stream: "\ufeff: hello\n\n\n" + "id: 1\nevent: message\nretry: 5\n" + events(content("a")) + ": ping\n\nfoo\nevent:x\n\n" + events(finish("stop")) + "data: [DONE]\n",
		want:   Reply{Text: "a", FinishReason: "stop"},
	},
	{
		name:   "S9, S1: characters of several bytes",
		stream: events(content("é€😀"), content(`\ud83d\ude00`), finish("stop")),
		want:   Reply{Text: "é€😀😀", FinishReason: "stop"},
	},
	{
		name: "S1: a surrogate pair cut in two, in text and in arguments",
		stream: events(content(`a\ud83d`), content(`\ude00b \ud83d`), `{"choices":[]}`, content(`\uDE00`), content(`\ud83d`),
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{\"q\":\"\ud83d"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\ude00\"}"}}]}}]}`, finish("stop")),
		want: Reply{Text: "a😀b 😀\ufffd", ToolCalls: []abi.ToolCall{{ID: "1", Name: "f", Arguments: `{"q":"😀"}`}}, FinishReason: "stop"},
	},
	{
		name:   "halves that are none: out of order, alone, twice, and what only looks like one",
		stream: events(content(`\ude00\ud83d`), content(`\ud83dx\\ud83d`), content("\U0010F83D"), content(`\ud83d`), content("\U0010FE00"), finish("stop")),
		want:   Reply{Text: "\ufffd\ufffd\ufffdx\\ud83d\U0010F83D\ufffd\U0010FE00", FinishReason: "stop"},
	},
	{
		name:   "half a surrogate pair and bytes that are no UTF-8",
		stream: events(content(`a\ud83d`), content("b\xff"), finish("stop")),
		want:   Reply{Text: "a\ufffdb\ufffd", FinishReason: "stop"},
	},
	{
		name:   "members of other types count as absent",
		stream: events(`{"choices":[{"index":"0","delta":{"content":7,"tool_calls":{"a":1}},"finish_reason":false}],"usage":[1]}`, content("a"), finish("stop")),
		want:   Reply{Text: "a", FinishReason: "stop"},
	},
}

func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

func content(text string) string {
	return `{"choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}]}`
}

func called(parts string) string {
	return `{"choices":[{"index":0,"delta":{"tool_calls":[` + parts + `]}}]}`
}

func finish(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

func calls(idNameArguments ...string) []abi.ToolCall {
	var out []abi.ToolCall
	for i := 0; i < len(idNameArguments); i += 3 {
		out = append(out, abi.ToolCall{ID: idNameArguments[i], Name: idNameArguments[i+1], Arguments: idNameArguments[i+2]})
	}
	return out
}

var madeID = regexp.MustCompile(`^call_[A-Z2-7]{26}$`)

// wantReply compares, with every made id as "made".
func wantReply(t *testing.T, got *Reply, text string, err error, want Reply) {
	t.Helper()
	if err != nil {
		t.Fatalf("error %v, want a reply", err)
	}
	seen := map[string]bool{}
	for i := range got.ToolCalls {
		id := &got.ToolCalls[i].ID
		if seen[*id] {
			t.Errorf("id %q twice", *id)
		}
		seen[*id] = true
		if madeID.MatchString(*id) {
			*id = "made"
		}
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	if text != want.Text {
		t.Errorf("onText was given %q, want %q", text, want.Text)
	}
}

func TestOddStreams(t *testing.T) {
	for _, c := range oddStreams {
		t.Run(c.name, func(t *testing.T) {
			for how, pieces := range map[string][]string{"at once": {c.stream}, "bytewise": bytewise(c.stream)} {
				t.Run(how, func(t *testing.T) {
					client := serve(t, Options{}, sends("text/event-stream", pieces...))
					reply, text, err := collect(t.Context(), client, streamed())
					wantReply(t, reply, text, err, c.want)
				})
			}
		})
	}
}

// pieces is a body that is read as it was cut.
type pieces []string

func (p *pieces) Read(b []byte) (int, error) {
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	if (*p)[0] = (*p)[0][n:]; (*p)[0] == "" {
		*p = (*p)[1:]
	}
	return n, nil
}

// S9, S1: for every cut into two the result is the same.
func TestStreamCutAnywhere(t *testing.T) {
	c := client(t, Options{Agent: Alias{BaseURL: "http://127.0.0.1:1"}})
	for _, s := range oddStreams {
		t.Run(s.name, func(t *testing.T) {
			for at := 1; at < len(s.stream); at++ {
				k := c.newCall(t.Context(), c.endpoints[abi.ModelAgent])
				var text strings.Builder
				reply, err := k.stream(&pieces{s.stream[:at], s.stream[at:]}, func(s string) { text.WriteString(s) })
				k.close()
				wantReply(t, reply, text.String(), err, s.want)
				if t.Failed() {
					t.Fatalf("cut at %d: %s", at, fmt.Sprintf("%q ✂ %q", s.stream[:at], s.stream[at:]))
				}
			}
		})
	}
}

func FuzzChunk(f *testing.F) {
	for _, c := range oddStreams {
		for line := range strings.Lines(c.stream) {
			f.Add([]byte(strings.TrimPrefix(strings.TrimSpace(line), "data: ")))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := decodeChunk(data)
		if err != nil {
			return
		}
		a := assembly{limit: 1 << 20}
		var text strings.Builder
		onText := func(s string) { text.WriteString(s) }
		if a.add(&c, onText) != nil {
			return
		}
		reply, err := a.end(true, onText)
		if err != nil {
			return
		}
		if reply.Text != text.String() {
			t.Errorf("text %q, onText was given %q", reply.Text, text.String())
		}
		for _, call := range reply.ToolCalls {
			if call.ID == "" || call.Name == "" {
				t.Errorf("a call without id or name: %+v", call)
			}
		}
	})
}

func FuzzStream(f *testing.F) {
	for _, c := range oddStreams {
		f.Add([]byte(c.stream), uint(7))
	}
	client, err := New(Options{Agent: Alias{BaseURL: "http://127.0.0.1:1", Name: "a"}, Guard: Alias{BaseURL: "http://127.0.0.1:1", Name: "g"}})
	if err != nil {
		f.Fatal(err)
	}
	read := func(t *testing.T, body io.Reader) (string, error) {
		k := client.newCall(t.Context(), client.endpoints[abi.ModelAgent])
		defer k.close()
		reply, err := k.stream(body, func(string) {})
		if err != nil {
			return "", err
		}
		for i := range reply.ToolCalls {
			if madeID.MatchString(reply.ToolCalls[i].ID) {
				reply.ToolCalls[i].ID = "made"
			}
		}
		return fmt.Sprintf("%+v", *reply), nil
	}
	f.Fuzz(func(t *testing.T, data []byte, at uint) {
		stream := string(data)
		want, wantErr := read(t, strings.NewReader(stream))
		if stream == "" {
			return
		}
		cut := int(at % uint(len(stream)))
		parts := pieces{stream[:cut], stream[cut:]}
		if cut == 0 {
			parts = pieces{stream}
		}
		got, gotErr := read(t, &parts)
		if got != want || (gotErr == nil) != (wantErr == nil) {
			t.Errorf("cut at %d: %s, %v\nat once: %s, %v", cut, got, gotErr, want, wantErr)
		}
	})
}
