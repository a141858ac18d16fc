package reply_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/cmd/weir/internal/agentv/reply"
	"weir/host/fault"
)

// agentv.md 1.9, row by row.
func TestForms(t *testing.T) {
	for _, tt := range []struct {
		in, want, calls, text string
		odd                   int
	}{
		{`{"action":"call_tool","tool_name":"a","tool_params":{"x":1},"summary":"s"}`, reply.Tools, `a{"x":1}`, "s", 0},
		{`{"action":"call_tool","tool_name":"a","tool":"b","params":{"y":2}}`, reply.Tools, `a{"y":2}`, "", 0},
		{`{"action":"call_tool","tool_name":"a"}`, reply.Tools, `a{}`, "", 0},
		{`{"action":"call_tool","tool_name":"a","tool_params":null}`, reply.Tools, `a{}`, "", 0},
		{`{"action":"call_tool","tool":"a","params":{"x":1}}`, reply.Tools, `a{"x":1}`, "", 1},
		{`{"action":"call_multiple_tools","tool_calls":[{"tool":"a","params":{"port":8080}},{"tool_name":"b","tool_params":{"v":"1"}}],"tool_names":["c"]}`, reply.Tools, `a{"port":8080} b{"v":"1"}`, "", 0},
		{`{"action":"call_multiple_tools","tool_calls":[],"tool_names":["a","b"]}`, reply.Tools, `a{} b{}`, "", 0},
		{`{"action":"final_answer","summary":"s","content":"c"}`, reply.Final, "", "s", 0},
		{`{"action":"completed","content":"c"}`, reply.Final, "", "c", 0},
		{`{"action":"final_answer","summary":"","instructions":"i","message":"m"}`, reply.Final, "", "i", 0},
		{`{"action":"final_answer","message":"m","content":"c"}`, reply.Final, "", "m", 0},
		{`{"action":"final_answer","summary":{"a":[1,true]}}`, reply.Final, "", `{"a": [1, true]}`, 0},
		{`{"action":"provide_instructions","instructions":"i"}`, reply.Final, "", "i", 1},
		{`{"action":"hitl_pause","prompt":"p","reason":"r"}`, reply.Pause, "", "p", 0},
		{`{"action":"hitl_pause","reason":"r"}`, reply.Pause, "", "r", 0},
		{`{"action":"hitl_pause"}`, reply.Pause, "", "Human intervention required.", 0},
		{`{"action":"processing"}`, reply.Processing, "", "", 0},
		{`{"action":"error","message":"m","summary":"s"}`, reply.Error, "", "m", 0},
		{`{"action":"final_answer","tool_outputs":[]}`, reply.Final, "", "", 1},
		{`{"action":"dance"}`, reply.Unknown, "", "", 0},
		{`{}`, reply.Unknown, "", "", 0},
		{`{"action":7}`, reply.Unknown, "", "", 0},
	} {
		r, err := reply.Parse([]byte(tt.in))
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		var calls []string
		for _, c := range r.Calls {
			calls = append(calls, c.Tool+string(c.Params))
		}
		text := r.Text
		if r.Want == reply.Pause {
			text = r.Prompt
		}
		if r.Want != tt.want || strings.Join(calls, " ") != tt.calls || text != tt.text || len(r.Oddities) != tt.odd {
			t.Errorf("%s:\n got %s %q %q %q\nwant %s %q %q, %d oddities", tt.in, r.Want, calls, text, r.Oddities, tt.want, tt.calls, tt.text, tt.odd)
		}
	}
}

func TestGarbage(t *testing.T) {
	for in, want := range map[string]string{
		``:                                     "expected a JSON object",
		`null`:                                 "got another value",
		`[1]`:                                  "got another value",
		`not json`:                             "expected a JSON object: offset 0",
		`{"action":"completed"`:                "expected a JSON object",
		`{"action":"completed"}` + "\nlog":     "expected a JSON object",
		`{"action":"a","action":"b"}`:          `repeated field "action"`,
		"{\"action\":\"\xff\"}":                "UTF-8",
		`{"action":"call_tool"}`:               "expected tool_name",
		`{"action":"call_tool","tool_name":7}`: "expected tool_name",
		`{"action":"call_tool","tool_name":"a","tool_params":[1]}`:              "tool_params: expected an object",
		`{"action":"call_multiple_tools"}`:                                      "expected tool_calls or tool_names",
		`{"action":"call_multiple_tools","tool_calls":{}}`:                      "expected an array",
		`{"action":"call_multiple_tools","tool_calls":["a"]}`:                   "tool_calls[0]: expected an object",
		`{"action":"call_multiple_tools","tool_calls":[{"tool":"a"},{"x":""}]}`: "tool_calls[1]: expected tool",
		`{"action":"call_multiple_tools","tool_names":[1]}`:                     "tool_names: expected a list of strings",
		strings.Repeat("[", 200):                                                "expected a JSON object",
	} {
		_, err := reply.Parse([]byte(in))
		if err == nil || !strings.Contains(err.Error(), want) || fault.Of(err) != fault.Invalid {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

// The agent's name: metadata.agent_name, metadata.model, name, agent_name.
func TestName(t *testing.T) {
	for in, want := range map[string]string{
		`{"metadata":{"agent_name":"1","model":"2"},"name":"3","agent_name":"4"}`: "1",
		`{"metadata":{"agent_name":"","model":"2"},"name":"3"}`:                   "2",
		`{"metadata":{"name":"0"},"name":"3","agent_name":"4"}`:                   "3",
		`{"metadata":"x","agent_name":"4"}`:                                       "4",
		`{"name":" a\u001b[2J\u202eb\n"}`:                                         "a[2Jb",
		`{"name":7}`:                                                              "",
		fmt.Sprintf(`{"name":"%s"}`, strings.Repeat("é", 200)):                    strings.Repeat("é", 100),
	} {
		if r, err := reply.Parse([]byte(in)); err != nil || r.Name != want {
			t.Errorf("%s: %+v, %v, want %q", in, r, err, want)
		}
	}
}

// Whatever an agent sends, a reply that asks for tools names them, and the rest
// is an error.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"action":"call_multiple_tools","tool_calls":[{"tool":"a","params":{"x":1}}],"tool_names":["b"],"metadata":{"model":"m"}}`))
	f.Add([]byte(`{"action":"hitl_pause","prompt":null,"summary":[1.50]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := reply.Parse(data)
		if err != nil {
			if fault.Of(err) != fault.Invalid {
				t.Errorf("%q: %v", data, err)
			}
			return
		}
		if (r.Want == reply.Tools) != (len(r.Calls) > 0) {
			t.Errorf("%q: %s with %d calls", data, r.Want, len(r.Calls))
		}
		for _, c := range r.Calls {
			if len(c.Params) == 0 || c.Params[0] != '{' {
				t.Errorf("%q: parameters %q", data, c.Params)
			}
		}
	})
}
