package approval

import (
	"errors"
	"fmt"
	"slices"

	"weir/abi/strictjson"
	"weir/host/fault"
)

// Kind is how a person answers; input_type and type on the wire.
type Kind string

// The kinds.
const (
	KindRadio        Kind = "radio"
	KindText         Kind = "text"
	KindBinaryChoice Kind = "binary_choice"
)

// The pair that cancels a radio prompt, and the value alone a text prompt (3.3).
const (
	CancelID    = "cancel"
	CancelValue = "__CANCEL__"
)

// ConfirmID is the option of a binary choice that confirms; CancelID rejects.
const ConfirmID = "confirm"

// Prompt is one question to a person; an answer is always required. It is not
// modified after it was made.
type Prompt struct {
	Kind        Kind
	Text        string
	Placeholder string   // KindText
	Options     []Option // KindRadio
}

// Option is one choice of a radio prompt. Its id and value come back with the
// answer, its label and description are for reading.
type Option struct {
	ID, Label, Value, Description string
}

// AppendJSON appends the prompt as the wire has it (3.4): compact, one line,
// only the keys of its kind.
func (p *Prompt) AppendJSON(b []byte) []byte {
	b = strictjson.AppendString(append(b, `{"input_type":`...), string(p.Kind))
	b = strictjson.AppendString(append(b, `,"text":`...), p.Text)
	if p.Kind == KindText {
		b = strictjson.AppendString(append(b, `,"placeholder":`...), p.Placeholder)
	}
	b = append(b, `,"required":true`...)
	if p.Kind == KindRadio {
		b = append(b, `,"options":[`...)
		for i, o := range p.Options {
			if i > 0 {
				b = append(b, ',')
			}
			b = o.appendJSON(b)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

func (o *Option) appendJSON(b []byte) []byte {
	b = strictjson.AppendString(append(b, `{"id":`...), o.ID)
	b = strictjson.AppendString(append(b, `,"label":`...), o.Label)
	b = strictjson.AppendString(append(b, `,"value":`...), o.Value)
	b = strictjson.AppendString(append(b, `,"description":`...), o.Description)
	return append(b, '}')
}

// ParsePrompt reads what AppendJSON wrote, for a prompt that comes back from the
// log. It is strict and checks the prompt as it was checked when it was made.
func ParsePrompt(data []byte) (*Prompt, error) {
	p := &Prompt{}
	if err := p.decode(data); err != nil {
		return nil, fault.New(fault.Invalid, "prompt: %w", err)
	}
	if err := p.check(); err != nil {
		return nil, fault.New(fault.Invalid, "prompt: %w", err)
	}
	return p, nil
}

func (p *Prompt) decode(data []byte) error {
	var seen []string
	d := strictjson.NewDecoder(data)
	err := d.Object(func(name string) (err error) {
		seen = append(seen, name)
		switch name {
		case "input_type":
			var kind string
			kind, err = d.String()
			p.Kind = Kind(kind)
		case "text":
			p.Text, err = d.String()
		case "placeholder":
			p.Placeholder, err = d.String()
		case "required":
			var required bool
			if required, err = d.Bool(); err == nil && !required {
				err = errors.New("required: expected true")
			}
		case "options":
			err = d.Array(func() error {
				o, err := decodeOption(d)
				p.Options = append(p.Options, o)
				return err
			})
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	if err == nil {
		err = d.End()
	}
	if err != nil {
		return err
	}
	return p.complete(seen)
}

// complete checks that the keys are exactly those of the kind.
func (p *Prompt) complete(seen []string) error {
	want := []string{"input_type", "text", "required"}
	switch p.Kind {
	case KindText:
		want = append(want, "placeholder")
	case KindRadio:
		want = append(want, "options")
	}
	for _, name := range want {
		if !slices.Contains(seen, name) {
			return strictjson.Missing(name)
		}
	}
	for _, name := range seen {
		if !slices.Contains(want, name) {
			return strictjson.Unknown(name)
		}
	}
	return nil
}

func decodeOption(d *strictjson.Decoder) (o Option, err error) {
	return o, decodeFields(d, map[string]*string{"id": &o.ID, "label": &o.Label, "value": &o.Value, "description": &o.Description})
}

// decodeFields reads an object of exactly these strings.
func decodeFields(d *strictjson.Decoder, fields map[string]*string) error {
	seen := map[string]bool{}
	err := d.Object(func(name string) (err error) {
		into := fields[name]
		if into == nil {
			return strictjson.Unknown(name)
		}
		seen[name] = true
		*into, err = d.String()
		return err
	})
	if err != nil {
		return err
	}
	for name := range fields {
		if !seen[name] {
			return strictjson.Missing(name)
		}
	}
	return nil
}

// Bounds of a prompt.
const (
	MaxPrompt  = 64 << 10 // bytes of all its texts
	MaxOptions = 64
	// MaxOption bounds the texts of one option in bytes, so that the answer
	// that repeats them fits MaxResponse however it is escaped.
	MaxOption = 2 << 10
)

// check is what every prompt has to satisfy, whoever made it.
func (p *Prompt) check() error {
	if p.Text == "" {
		return errors.New("text: empty")
	}
	size := len(p.Text) + len(p.Placeholder)
	switch p.Kind {
	case KindText, KindBinaryChoice:
		if len(p.Options) > 0 {
			return errors.New("options: belong to radio only")
		}
	case KindRadio:
		if err := checkOptions(p.Options); err != nil {
			return err
		}
	default:
		return fmt.Errorf("kind %s: expected radio, text or binary_choice", quote(string(p.Kind)))
	}
	if p.Kind != KindText && p.Placeholder != "" {
		return errors.New("placeholder: belongs to text only")
	}
	for i := range p.Options {
		size += p.Options[i].size()
	}
	if size > MaxPrompt {
		return limit("prompt", size, MaxPrompt)
	}
	return nil
}

func checkOptions(options []Option) error {
	if len(options) == 0 || len(options) > MaxOptions {
		return fmt.Errorf("options: expected 1 to %d, got %d", MaxOptions, len(options))
	}
	for i, o := range options {
		switch {
		case o.ID == "" || o.Value == "":
			return fmt.Errorf("option %d: expected an id and a value", i+1)
		case o.size() > MaxOption:
			return fmt.Errorf("option %d: %w", i+1, limit("its texts", o.size(), MaxOption))
		case (o.ID == CancelID) != (o.Value == CancelValue):
			return fmt.Errorf("option %d: id %s and value %s belong together", i+1, CancelID, CancelValue)
		case slices.ContainsFunc(options[:i], func(earlier Option) bool { return earlier.ID == o.ID }):
			return fmt.Errorf("option %d: id %s is there already", i+1, quote(o.ID))
		}
	}
	return nil
}

func (o *Option) size() int { return len(o.ID) + len(o.Label) + len(o.Value) + len(o.Description) }

// Texts returns every text that a person reads, in order: the prompt's text,
// its placeholder, and label and description of each option. They are what
// output guards have to see of a prompt that a plugin wrote.
func (p *Prompt) Texts() []string {
	texts := []string{p.Text, p.Placeholder}
	for _, o := range p.Options {
		texts = append(texts, o.Label, o.Description)
	}
	return texts
}

// WithTexts returns the prompt with these in place of what Texts returned; it
// panics unless there are as many. The receiver stays as it is.
func (p *Prompt) WithTexts(texts []string) *Prompt {
	if len(texts) != 2+2*len(p.Options) {
		panic(fmt.Sprintf("approval: %d texts for a prompt of %d", len(texts), 2+2*len(p.Options)))
	}
	q := *p
	q.Text, q.Placeholder = texts[0], texts[1]
	q.Options = slices.Clone(p.Options)
	for i := range q.Options {
		q.Options[i].Label, q.Options[i].Description = texts[2+2*i], texts[3+2*i]
	}
	return &q
}

// Marks returns the ids and values of the options. They are on the wire and
// come back with the answer, so they cannot be replaced: a prompt of which an
// output guard would change one may not be shown.
func (p *Prompt) Marks() []string {
	var marks []string
	for _, o := range p.Options {
		marks = append(marks, o.ID, o.Value)
	}
	return marks
}
