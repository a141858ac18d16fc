package approval_test

import (
	"reflect"
	"strings"
	"testing"

	"weir/abi"
	"weir/host/approval"
	"weir/host/fault"
)

func promptJSON(p *approval.Prompt) string { return string(p.AppendJSON(nil)) }

const noteLine = `Model-supplied note (not verified by a human; will be signed and recorded verbatim if you approve): `

// 3.4: the bytes of both prompts, with and without a note.
func TestPromptBytes(t *testing.T) {
	radio := func(note string) string {
		return `{"input_type":"radio","text":"Ticket TKT-1001 is currently 'medium' priority.\nThe assistant proposes 'high'.\nSummary: Delayed delivery, asked twice.\n` + note +
			`Choose the priority to record. Any change requires a reason.","required":true,"options":[` +
			`{"id":"low","label":"Change to — low","value":"low","description":"Requires a reason, recorded against your identity."},` +
			`{"id":"medium","label":"Keep — medium","value":"medium","description":"No change is applied."},` +
			`{"id":"high","label":"Change to — high","value":"high","description":"Requires a reason, recorded against your identity."},` +
			`{"id":"urgent","label":"Change to — urgent","value":"urgent","description":"Requires a reason, recorded against your identity."},` +
			`{"id":"cancel","label":"Cancel","value":"__CANCEL__","description":"Change nothing."}]}`
	}
	text := func(note string) string {
		return `{"input_type":"text","text":"Ticket TKT-1001: Delayed delivery, asked twice.\nThe ticket is currently 'medium' priority. You are changing it to 'urgent'. ` +
			`This is recorded in the append-only audit trail against your identity and requires a reason.` + note + `","placeholder":"Why should this ticket's priority change?","required":true}`
	}
	c := catalogOf(t)
	for note, want := range map[string][2]string{
		"":          {radio(""), text("")},
		" \n ":      {radio(""), text("")},
		" Call her": {radio(noteLine + `Call her\n`), text(`\n` + noteLine + `Call her`)},
	} {
		p := escalation(t, c, note)
		first, second := p.Next(rep(), nil).Prompt, p.Next(rep(), answered("urgent")).Prompt
		wantText(t, "radio", promptJSON(first), want[0])
		wantText(t, "text", promptJSON(second), want[1])
		for _, q := range []*approval.Prompt{first, second} {
			back, err := approval.ParsePrompt(q.AppendJSON(nil))
			if err != nil || !reflect.DeepEqual(back, q) {
				t.Errorf("from the log: %+v, %v", back, err)
			}
		}
	}
}

// What a model wrote is no template, and shows as what it is.
func TestPromptsTakeTextAsItIs(t *testing.T) {
	c := catalogOf(t)
	p := escalation(t, c, "{resource} {note} {choice} %s \u2028").WithSummary("{note} <EMAIL_ADDRESS>")
	text := p.Next(rep(), nil).Prompt.Text
	contains(t, "prompt", text, "Summary: {note} <EMAIL_ADDRESS>\n", "approve): {resource} {note} {choice} %s\n")
	if p.Summary() != "{note} <EMAIL_ADDRESS>" || p.Note() != "{resource} {note} {choice} %s" {
		t.Errorf("summary %q, note %q", p.Summary(), p.Note())
	}
}

func TestParsePromptRefuses(t *testing.T) {
	option := `{"id":"a","label":"A","value":"1","description":""}`
	valid := []string{
		`{"input_type":"binary_choice","text":"x","required":true}`,
		`{"required":true,"text":"x","placeholder":"","input_type":"text"}`,
		`{"input_type":"radio","text":"x","required":true,"options":[` + option + `]}`,
	}
	for _, text := range valid {
		if _, err := approval.ParsePrompt([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for name, text := range map[string]string{
		"nothing":             ``,
		"no object":           `[]`,
		"unknown kind":        strings.Replace(valid[0], "binary_choice", "checkbox", 1),
		"not required":        strings.Replace(valid[0], "true", "false", 1),
		"no text":             `{"input_type":"binary_choice","required":true}`,
		"empty text":          strings.Replace(valid[0], `"x"`, `""`, 1),
		"twice":               strings.Replace(valid[0], `"text":"x"`, `"text":"x","text":"y"`, 1),
		"more behind":         valid[0] + "1",
		"another case":        strings.Replace(valid[0], `"text"`, `"Text"`, 1),
		"radio: placeholder":  strings.Replace(valid[2], `"required"`, `"placeholder":"","required"`, 1),
		"text: options":       strings.Replace(valid[1], `"required"`, `"options":[`+option+`],"required"`, 1),
		"text: no hint":       `{"input_type":"text","text":"x","required":true}`,
		"binary: options":     strings.Replace(valid[0], `"required"`, `"options":[],"required"`, 1),
		"radio: no options":   `{"input_type":"radio","text":"x","required":true,"options":[]}`,
		"radio: same id":      strings.Replace(valid[2], option, option+","+option, 1),
		"radio: half cancel":  strings.Replace(valid[2], `"id":"a"`, `"id":"cancel"`, 1),
		"radio: other half":   strings.Replace(valid[2], `"value":"1"`, `"value":"__CANCEL__"`, 1),
		"radio: no value":     strings.Replace(valid[2], `"value":"1"`, `"value":""`, 1),
		"option: field more":  strings.Replace(valid[2], `"label"`, `"x":1,"label"`, 1),
		"option: field less":  strings.Replace(valid[2], `,"description":""`, ``, 1),
		"option: null":        strings.Replace(valid[2], `"description":""`, `"description":null`, 1),
		"option: too long":    strings.Replace(valid[2], `"A"`, `"`+strings.Repeat("A", approval.MaxOption)+`"`, 1),
		"too long altogether": strings.Replace(valid[0], `"x"`, `"`+strings.Repeat("x", approval.MaxPrompt+1)+`"`, 1),
	} {
		if p, err := approval.ParsePrompt([]byte(text)); err == nil || fault.Of(err) != fault.Invalid {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

// Every text that a person reads can be guarded, and nothing else changes.
func TestPromptTexts(t *testing.T) {
	p, err := approval.Question(&abi.AskHuman{Kind: abi.AskRadio, Text: "Which?",
		Options: []abi.Option{{ID: "a", Label: "A", Value: "1", Description: "first"}, {ID: "b", Label: "B", Value: "2"}}})
	if err != nil {
		t.Fatal(err)
	}
	texts := p.Texts()
	for i := range texts {
		texts[i] = "<" + texts[i] + ">"
	}
	before := promptJSON(p)
	wantText(t, "guarded", promptJSON(p.WithTexts(texts)), `{"input_type":"radio","text":"<Which?>","required":true,"options":[`+
		`{"id":"a","label":"<A>","value":"1","description":"<first>"},{"id":"b","label":"<B>","value":"2","description":"<>"},`+
		`{"id":"cancel","label":"<Cancel>","value":"__CANCEL__","description":"<>"}]}`)
	wantText(t, "the original", promptJSON(p), before)
	if got := strings.Join(p.Marks(), " "); got != "a 1 b 2 cancel __CANCEL__" {
		t.Errorf("marks: %s", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("texts of another prompt were taken")
		}
	}()
	p.WithTexts(texts[1:])
}

// DECISIONS 6 and 1: a workflow's ask and a guardrail's require_approval.
func TestQuestions(t *testing.T) {
	radio := []abi.Option{{ID: "a", Label: "A", Value: "1"}}
	tests := []struct {
		name string
		ask  abi.AskHuman
		want string // "": refused
	}{
		{"binary choice", abi.AskHuman{Kind: abi.AskBinaryChoice, Text: "Go on?"}, `{"input_type":"binary_choice","text":"Go on?","required":true}`},
		{"text", abi.AskHuman{Kind: abi.AskText, Text: "Why?", Placeholder: "…"}, `{"input_type":"text","text":"Why?","placeholder":"…","required":true}`},
		{"radio", abi.AskHuman{Kind: abi.AskRadio, Text: "Which?", Options: radio},
			`{"input_type":"radio","text":"Which?","required":true,"options":[{"id":"a","label":"A","value":"1","description":""},{"id":"cancel","label":"Cancel","value":"__CANCEL__","description":""}]}`},
		{"radio with its own way out", abi.AskHuman{Kind: abi.AskRadio, Text: "Which?", Options: []abi.Option{{ID: "cancel", Label: "No", Value: "__CANCEL__"}}},
			`{"input_type":"radio","text":"Which?","required":true,"options":[{"id":"cancel","label":"No","value":"__CANCEL__","description":""}]}`},
		{"an id that cancels and a value that does not", abi.AskHuman{Kind: abi.AskRadio, Text: "Which?", Options: []abi.Option{{ID: "cancel", Label: "No", Value: "no"}}}, ""},
		{"an option without a value", abi.AskHuman{Kind: abi.AskRadio, Text: "Which?", Options: []abi.Option{{ID: "a", Label: "No"}}}, ""},
		{"no options", abi.AskHuman{Kind: abi.AskRadio, Text: "Which?"}, ""},
		{"no text", abi.AskHuman{Kind: abi.AskText}, ""},
		{"another kind", abi.AskHuman{Kind: "checkbox", Text: "x"}, ""},
		{"too long", abi.AskHuman{Kind: abi.AskText, Text: strings.Repeat("x", approval.MaxPrompt+1)}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := approval.Question(&tt.ask)
			if tt.want == "" {
				if err == nil || fault.Of(err) != fault.Plugin {
					t.Errorf("%+v, %v", p, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantText(t, "prompt", promptJSON(p), tt.want)
		})
	}
	p, err := approval.CallQuestion("get_ticket", abi.Raw(`{ "ticket_id": "TKT-1" }`), " Really? ")
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, "a held call", promptJSON(p), `{"input_type":"binary_choice","text":"Really?\nTool: get_ticket\nArguments: {\"ticket_id\":\"TKT-1\"}","required":true}`)
	if p, err = approval.CallQuestion("get_ticket", nil, ""); err != nil || !strings.HasSuffix(p.Text, "\nTool: get_ticket\nArguments: {}") {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := approval.CallQuestion("", nil, ""); err == nil {
		t.Error("a call of no tool")
	}
	if _, err := approval.CallQuestion("x", abi.Raw(`{`), ""); err == nil {
		t.Error("arguments that are not JSON")
	}
}
