package approval

import (
	"errors"
	"strings"

	"weir/abi/strictjson"
	"weir/host/fault"
)

// MaxResponse is how many bytes the body of a response may have; the route
// checks it before it reads.
const MaxResponse = 16384

// Response is what a person submitted.
type Response struct {
	Kind  Kind
	ID    string // of the selected option
	Value string // of the selected option, KindRadio
	Bool  bool   // of the selected option, KindBinaryChoice
	Text  string // KindText
}

// Codes of Accept's errors; both are 422 on the wire.
const (
	CodeWrongKind  = "wrong_kind"
	CodeNotOffered = "not_offered"
)

// Outcomes of a prompt.
const (
	Answered  = "answered"
	Cancelled = "cancelled"
	Expired   = "expired"
)

// Answer is what became of a prompt. It stands in the log.
type Answer struct {
	Outcome string `json:"outcome"`
	ID      string `json:"id,omitempty"`    // of the option
	Value   string `json:"value,omitempty"` // of the option, or the trimmed text
}

// ParseAnswer reads an answer that comes back from the log. What cannot be read
// counts as cancelled.
func ParseAnswer(data []byte) Answer {
	var a Answer
	d := strictjson.NewDecoder(data)
	err := d.Object(func(name string) (err error) {
		switch name {
		case "outcome":
			a.Outcome, err = d.String()
		case "id":
			a.ID, err = d.String()
		case "value":
			a.Value, err = d.String()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	if err != nil || d.End() != nil {
		return Answer{Outcome: Cancelled}
	}
	return a
}

// DecodeResponse reads the body of a response (3.2), strictly at every level.
// The error is of kind fault.Invalid and its text is the contract's, without
// any value of the body.
func DecodeResponse(body []byte) (*Response, error) {
	r, err := decodeResponse(body)
	if err != nil {
		return nil, fault.New(fault.Invalid, "invalid interaction response: %w", err)
	}
	return r, nil
}

func decodeResponse(body []byte) (*Response, error) {
	var inner []byte
	d := strictjson.NewDecoder(body)
	err := d.Object(func(name string) (err error) {
		if name != "response" {
			return strictjson.Unknown(name)
		}
		inner, err = d.Raw()
		return err
	})
	if err == nil {
		err = d.End()
	}
	if err != nil {
		return nil, err
	}
	if inner == nil {
		return nil, strictjson.Missing("response")
	}
	return decodeTyped(inner)
}

// decodeTyped reads the response proper: which fields there are depends on a
// type that may stand behind them.
func decodeTyped(data []byte) (*Response, error) {
	members := map[string][]byte{}
	d := strictjson.NewDecoder(data)
	if err := d.Object(func(name string) (err error) {
		members[name], err = d.Raw()
		return err
	}); err != nil {
		return nil, within("response", err)
	}
	kind, err := stringMember(members, "type")
	if err != nil {
		return nil, err
	}
	r := &Response{Kind: Kind(kind)}
	field := "selected_option"
	switch r.Kind {
	case KindRadio, KindBinaryChoice:
	case KindText:
		field = "text"
	default:
		return nil, errors.New("type: expected radio, text or binary_choice")
	}
	for name := range members {
		if name != "type" && name != field {
			return nil, within("response", strictjson.Unknown(name))
		}
	}
	if r.Kind == KindText {
		r.Text, err = stringMember(members, field)
		return r, err
	}
	if members[field] == nil {
		return nil, within("response", strictjson.Missing(field))
	}
	return r, within(field, r.decodeSelected(members[field]))
}

func stringMember(members map[string][]byte, name string) (string, error) {
	if members[name] == nil {
		return "", within("response", strictjson.Missing(name))
	}
	s, err := strictjson.NewDecoder(members[name]).String()
	return s, within(name, err)
}

// decodeSelected reads a selected option. Label and description are repeated by
// the client and compared with nothing.
func (r *Response) decodeSelected(data []byte) error {
	var id, label, value bool
	d := strictjson.NewDecoder(data)
	err := d.Object(func(name string) (err error) {
		switch {
		case name == "id":
			id = true
			r.ID, err = d.String()
		case name == "label":
			label = true
			_, err = d.String()
		case name == "value" && r.Kind == KindBinaryChoice:
			value = true
			r.Bool, err = d.Bool()
		case name == "value":
			value = true
			r.Value, err = d.String()
		case name == "description" && r.Kind == KindRadio:
			_, err = d.String()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !id:
		return strictjson.Missing("id")
	case !label:
		return strictjson.Missing("label")
	case !value:
		return strictjson.Missing("value")
	}
	return nil
}

func within(what string, err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.Invalid, "%s: %w", what, err)
}

// Accept holds a response against the prompt (3.2, checks 7 and 8, and 3.3). Its
// errors have the contract's texts and CodeWrongKind or CodeNotOffered; the
// prompt is then still open.
func (p *Prompt) Accept(r *Response) (Answer, error) {
	if r.Kind != p.Kind {
		return Answer{}, fault.Coded(fault.Invalid, CodeWrongKind,
			`response type "%s" does not match the pending prompt type "%s"`, r.Kind, p.Kind)
	}
	switch p.Kind {
	case KindText:
		return acceptText(r.Text)
	case KindBinaryChoice:
		return acceptBinary(r)
	}
	if r.ID == CancelID && r.Value == CancelValue {
		return Answer{Outcome: Cancelled}, nil
	}
	for _, o := range p.Options {
		if o.ID == r.ID && o.Value == r.Value {
			return Answer{Outcome: Answered, ID: o.ID, Value: o.Value}, nil
		}
	}
	return Answer{}, notOffered()
}

func acceptText(text string) (Answer, error) {
	switch text = strings.TrimSpace(text); text {
	case "":
		return Answer{}, fault.Coded(fault.Invalid, CodeNotOffered, "a text answer must not be empty")
	case CancelValue:
		return Answer{Outcome: Cancelled}, nil
	}
	return Answer{Outcome: Answered, Value: text}, nil
}

// acceptBinary knows two pairs: (confirm, true) and (cancel, false).
func acceptBinary(r *Response) (Answer, error) {
	switch {
	case r.ID == ConfirmID && r.Bool:
		return Answer{Outcome: Answered, ID: ConfirmID, Value: "true"}, nil
	case r.ID == CancelID && !r.Bool:
		return Answer{Outcome: Cancelled}, nil
	}
	return Answer{}, notOffered()
}

func notOffered() error {
	return fault.Coded(fault.Invalid, CodeNotOffered, "the submitted choice was not offered by this prompt")
}
