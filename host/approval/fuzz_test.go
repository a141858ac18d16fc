package approval_test

import (
	"reflect"
	"strings"
	"testing"

	"weir/abi"
	"weir/host/approval"
)

// A body that is taken gives a response of one kind, with nothing of another's.
func FuzzDecodeResponse(f *testing.F) {
	f.Add([]byte(`{"response":{"type":"radio","selected_option":{"id":"high","label":"x","value":"high","description":"y"}}}`))
	f.Add([]byte(`{"response":{"type":"text","text":" \u00e9 "}}`))
	f.Add([]byte(`{"response":{"selected_option":{"id":"confirm","label":"","value":false},"type":"binary_choice"}}`))
	p, err := approval.ParsePrompt([]byte(`{"input_type":"radio","text":"x","required":true,"options":[{"id":"high","label":"","value":"high","description":""}]}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := approval.DecodeResponse(body)
		if err != nil {
			if r != nil {
				t.Error("a response and an error")
			}
			return
		}
		only := approval.Response{Kind: r.Kind, ID: r.ID}
		switch r.Kind {
		case approval.KindRadio:
			only.Value = r.Value
		case approval.KindBinaryChoice:
			only.Bool = r.Bool
		case approval.KindText:
			only = approval.Response{Kind: r.Kind, Text: r.Text}
		}
		if *r != only {
			t.Errorf("%+v", r)
		}
		if a, err := p.Accept(r); err == nil && a.Outcome == approval.Answered && (r.Kind != approval.KindRadio || r.ID != "high" || r.Value != "high") {
			t.Errorf("accepted: %+v", r)
		}
	})
}

// A prompt that is read writes itself so that it is read as the same.
func FuzzParsePrompt(f *testing.F) {
	f.Add([]byte(`{"input_type":"binary_choice","text":"x","required":true}`))
	f.Add([]byte(`{"input_type":"text","text":"x\u2028","placeholder":"","required":true}`))
	f.Add([]byte(`{"input_type":"radio","text":"x","required":true,"options":[{"id":"a","label":"A","value":"1","description":""}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := approval.ParsePrompt(data)
		if err != nil {
			return
		}
		again, err := approval.ParsePrompt(p.AppendJSON(nil))
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Errorf("%+v\n%+v, %v", p, again, err)
		}
		if same := p.WithTexts(p.Texts()); !reflect.DeepEqual(promptJSON(same), promptJSON(p)) {
			t.Errorf("texts put back: %+v", same)
		}
	})
}

// Whatever a model proposes is refused, or asked and signed as it was shown.
func FuzzPropose(f *testing.F) {
	f.Add([]byte(`{"ticket_id":"TKT-1001","current_priority":"medium","requested_priority":"high","summary":"s","note":"{note}\u2028"}`))
	f.Add([]byte(`{"ticket_id":" 1 ","current_priority":"low","requested_priority":"low","summary":"{summary}"}`))
	c := catalogOf(f)
	f.Fuzz(func(t *testing.T, arguments []byte) {
		p, err := c.Propose(tool, abi.Raw(arguments))
		if err != nil {
			return
		}
		first := p.Next(rep(), nil).Prompt
		if _, err := approval.ParsePrompt(first.AppendJSON(nil)); err != nil {
			t.Fatal(err)
		}
		choice := first.Options[0].Value
		if strings.HasPrefix(first.Options[0].Label, "Keep") {
			choice = first.Options[1].Value
		}
		second := p.Next(rep(), answered(choice)).Prompt
		for _, signed := range p.Signed() {
			if !strings.Contains(first.Text, signed) || !strings.Contains(second.Text, signed) {
				t.Errorf("%q is signed and not shown", signed)
			}
		}
		step := p.Next(rep(), answered(choice, "because"))
		if _, err := approval.Mint([]byte(secret), step.Claims); err != nil {
			t.Errorf("%s: %v", step.Claims, err)
		}
	})
}
