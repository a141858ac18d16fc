package approval_test

import (
	"encoding/json"
	"strings"
	"testing"

	"weir/abi"
	"weir/host/approval"
	"weir/host/fault"
)

// 3.2, the body: strict at every level, nothing optional but a description.
func TestDecodeResponse(t *testing.T) {
	const prefix = "invalid interaction response: "
	tests := []struct {
		body string
		want approval.Response
		err  string // part of it
	}{
		{`{"response":{"type":"radio","selected_option":{"id":"high","label":"x","value":"high","description":"y"}}}`, approval.Response{Kind: approval.KindRadio, ID: "high", Value: "high"}, ""},
		{` { "response" : { "selected_option" : {"value":"v","label":"","id":"i"} , "type" : "radio" } } `, approval.Response{Kind: approval.KindRadio, ID: "i", Value: "v"}, ""},
		{`{"response":{"type":"text","text":" Because. "}}`, approval.Response{Kind: approval.KindText, Text: " Because. "}, ""},
		{`{"response":{"type":"text","text":""}}`, approval.Response{Kind: approval.KindText}, ""},
		{`{"response":{"type":"binary_choice","selected_option":{"id":"confirm","label":"OK","value":true}}}`, approval.Response{Kind: approval.KindBinaryChoice, ID: "confirm", Bool: true}, ""},
		{``, approval.Response{}, "unexpected end"},
		{`null`, approval.Response{}, "expected an object"},
		{`{}`, approval.Response{}, `missing field "response"`},
		{`{"response":null}`, approval.Response{}, "expected an object"},
		{`{"response":{}}`, approval.Response{}, `missing field "type"`},
		{`{"response":{"type":"text","text":"x"},"extra":1}`, approval.Response{}, `unknown field "extra"`},
		{`{"response":{"type":"text","text":"x"}} {}`, approval.Response{}, "unexpected data"},
		{`{"response":{"type":"text","text":"x"},"response":{"type":"text","text":"x"}}`, approval.Response{}, `repeated field "response"`},
		{`{"Response":{"type":"text","text":"x"}}`, approval.Response{}, `unknown field "Response"`},
		{`{"response":{"type":"text","text":"x","text":"y"}}`, approval.Response{}, `repeated field "text"`},
		{`{"response":{"type":"text","text":"x","selected_option":{}}}`, approval.Response{}, `unknown field "selected_option"`},
		{`{"response":{"type":"text"}}`, approval.Response{}, `missing field "text"`},
		{`{"response":{"type":"text","text":null}}`, approval.Response{}, "expected a string"},
		{`{"response":{"type":"text","text":"\ud800"}}`, approval.Response{}, ""},
		{`{"response":{"type":"checkbox","text":"x"}}`, approval.Response{}, "expected radio, text or binary_choice"},
		{`{"response":{"type":1,"text":"x"}}`, approval.Response{}, "type: "},
		{`{"response":{"type":"radio","text":"x"}}`, approval.Response{}, `unknown field "text"`},
		{`{"response":{"type":"radio"}}`, approval.Response{}, `missing field "selected_option"`},
		{`{"response":{"type":"radio","selected_option":null}}`, approval.Response{}, "expected an object"},
		{`{"response":{"type":"radio","selected_option":{"label":"x","value":"v"}}}`, approval.Response{}, `missing field "id"`},
		{`{"response":{"type":"radio","selected_option":{"id":"i","value":"v"}}}`, approval.Response{}, `missing field "label"`},
		{`{"response":{"type":"radio","selected_option":{"id":"i","label":"x"}}}`, approval.Response{}, `missing field "value"`},
		{`{"response":{"type":"radio","selected_option":{"id":null,"label":"x","value":"v"}}}`, approval.Response{}, "expected a string"},
		{`{"response":{"type":"radio","selected_option":{"id":"i","label":"x","value":"v","description":null}}}`, approval.Response{}, "expected a string"},
		{`{"response":{"type":"radio","selected_option":{"id":"i","label":"x","value":true}}}`, approval.Response{}, "expected a string"},
		{`{"response":{"type":"radio","selected_option":{"id":"i","label":"x","value":"v","actor":"boss"}}}`, approval.Response{}, `unknown field "actor"`},
		{`{"response":{"type":"binary_choice","selected_option":{"id":"i","label":"x","value":"true"}}}`, approval.Response{}, "expected true or false"},
		{`{"response":{"type":"binary_choice","selected_option":{"id":"i","label":"x","value":true,"description":""}}}`, approval.Response{}, `unknown field "description"`},
	}
	refused := 0
	for _, tt := range tests {
		r, err := approval.DecodeResponse([]byte(tt.body))
		if tt.want != (approval.Response{}) {
			if err != nil || *r != tt.want {
				t.Errorf("%s: %+v, %v", tt.body, r, err)
			}
			continue
		}
		refused++
		if err == nil || fault.Of(err) != fault.Invalid || !strings.HasPrefix(err.Error(), prefix) || !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, want %q", tt.body, err, tt.err)
		}
	}
	if refused < 20 {
		t.Errorf("only %d refusals", refused)
	}
}

// 3.2, checks 7 and 8, and 3.3.
func TestAccept(t *testing.T) {
	p := escalation(t, catalogOf(t), "")
	radio, text := p.Next(rep(), nil).Prompt, p.Next(rep(), answered("high")).Prompt
	binary, err := approval.Question(&abi.AskHuman{Kind: abi.AskBinaryChoice, Text: "Go on?"})
	if err != nil {
		t.Fatal(err)
	}
	const (
		notOffered = "not_offered: the submitted choice was not offered by this prompt"
		empty      = "not_offered: a text answer must not be empty"
	)
	pair := func(id, value string) approval.Response {
		return approval.Response{Kind: approval.KindRadio, ID: id, Value: value}
	}
	says := func(text string) approval.Response {
		return approval.Response{Kind: approval.KindText, Text: text}
	}
	decides := func(id string, value bool) approval.Response {
		return approval.Response{Kind: approval.KindBinaryChoice, ID: id, Bool: value}
	}
	chosen := func(id, value string) string {
		return string(encode(t, approval.Answer{Outcome: "answered", ID: id, Value: value}))
	}
	const cancelled = `{"outcome":"cancelled"}`
	tests := []struct {
		prompt *approval.Prompt
		r      approval.Response
		want   string // the answer as the log has it, or code and text of the error
	}{
		{radio, pair("high", "high"), chosen("high", "high")},
		{radio, pair("medium", "medium"), chosen("medium", "medium")},
		{radio, pair("high", "low"), notOffered},
		{radio, pair("high", "High"), notOffered},
		{radio, pair("", ""), notOffered},
		{radio, pair("critical", "critical"), notOffered},
		{radio, pair("cancel", "__CANCEL__"), cancelled},
		{radio, pair("cancel", "high"), notOffered},
		{radio, pair("high", "__CANCEL__"), notOffered},
		{radio, pair("__CANCEL__", "__CANCEL__"), notOffered},
		{radio, says("high"), `wrong_kind: response type "text" does not match the pending prompt type "radio"`},
		{radio, decides("confirm", true), `wrong_kind: response type "binary_choice" does not match the pending prompt type "radio"`},
		{text, says(" Twice.\n"), chosen("", "Twice.")},
		{text, says(""), empty},
		{text, says(" \t\u00a0\n"), empty},
		{text, says(" __CANCEL__ "), cancelled},
		{text, says("__cancel__"), chosen("", "__cancel__")},
		{text, pair("cancel", "__CANCEL__"), `wrong_kind: response type "radio" does not match the pending prompt type "text"`},
		{binary, decides("confirm", true), chosen("confirm", "true")},
		{binary, decides("cancel", false), cancelled},
		{binary, decides("confirm", false), notOffered},
		{binary, decides("cancel", true), notOffered},
		{binary, decides("", true), notOffered},
		{binary, pair("confirm", "true"), `wrong_kind: response type "radio" does not match the pending prompt type "binary_choice"`},
	}
	for _, tt := range tests {
		a, err := tt.prompt.Accept(&tt.r)
		got := fault.CodeOf(err)
		if err == nil {
			got = string(encode(t, a))
		} else {
			got += ": " + err.Error()
			if fault.Of(err) != fault.Invalid || a != (approval.Answer{}) {
				t.Errorf("%+v: %v, %+v", tt.r, err, a)
			}
		}
		wantText(t, "answer", got, tt.want)
		var back approval.Answer
		if err == nil && (json.Unmarshal([]byte(got), &back) != nil || back != a) {
			t.Errorf("from the log: %+v, want %+v", back, a)
		}
	}
}

// An answer in the log that cannot be read is none that allows anything.
func TestParseAnswer(t *testing.T) {
	cancelled := approval.Answer{Outcome: approval.Cancelled}
	for text, want := range map[string]approval.Answer{
		`{"outcome":"answered","id":"a","value":"1"}`: {Outcome: approval.Answered, ID: "a", Value: "1"},
		`{"value":"1","outcome":"answered"}`:          {Outcome: approval.Answered, Value: "1"},
		`{"outcome":"expired"}`:                       {Outcome: approval.Expired},
		`{"outcome":"cancelled"}`:                     cancelled,
		``:                                            cancelled,
		`null`:                                        cancelled,
		`{"outcome":"answered","value":1}`:            cancelled,
		`{"outcome":"answered","Value":"1"}`:          cancelled,
		`{"outcome":"answered"} 1`:                    cancelled,
	} {
		if got := approval.ParseAnswer([]byte(text)); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}
