package abi

import "weir/abi/strictjson"

// AppendJSON appends the message.
func (m *ModelRequest) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendStr(b, "model", m.Model)
	b = appendOptList(b, "messages", m.Messages, (*Message).AppendJSON)
	if m.Prompt != nil {
		b = m.Prompt.AppendJSON(appendKey(b, "prompt"))
	}
	if m.Temperature != nil {
		b = strictjson.AppendFloat(appendKey(b, "temperature"), *m.Temperature)
	}
	b = appendOptInt(b, "max_tokens", m.MaxTokens)
	if m.Tools != nil {
		b = m.Tools.AppendJSON(appendKey(b, "tools"))
	}
	b = appendOptBool(b, "stream", m.Stream)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *ModelRequest) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *ModelRequest) read(d *strictjson.Decoder) error {
	*m = ModelRequest{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "model":
			g.see(0)
			m.Model, err = d.String()
		case "messages":
			m.Messages, err = readList(d, (*Message).read)
		case "prompt":
			m.Prompt, err = readNew(d, (*PromptUse).read)
		case "temperature":
			m.Temperature, err = readNew(d, readFloat)
		case "max_tokens":
			m.MaxTokens, err = readInt(d)
		case "tools":
			m.Tools, err = readNew(d, (*ToolSet).read)
		case "stream":
			m.Stream, err = d.Bool()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "model")
}

// AppendJSON appends the message.
func (m *Message) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendOptStr(b, "role", m.Role)
	b = appendOptStr(b, "content", m.Content)
	b = appendOptList(b, "tool_calls", m.ToolCalls, (*ToolCall).AppendJSON)
	b = appendOptStr(b, "tool_call_id", m.ToolCallID)
	b = appendOptInt(b, "ref", m.Ref)
	b = appendOptInt(b, "turn", m.Turn)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *Message) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *Message) read(d *strictjson.Decoder) error {
	*m = Message{}
	return d.Object(func(name string) (err error) {
		switch name {
		case "role":
			m.Role, err = d.String()
		case "content":
			m.Content, err = d.String()
		case "tool_calls":
			m.ToolCalls, err = readList(d, (*ToolCall).read)
		case "tool_call_id":
			m.ToolCallID, err = d.String()
		case "ref":
			m.Ref, err = readInt(d)
		case "turn":
			m.Turn, err = readInt(d)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
}

// AppendJSON appends the message.
func (m *PromptUse) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendStr(b, "name", m.Name)
	b = appendOptList(b, "vars", m.Vars, (*Var).AppendJSON)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *PromptUse) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *PromptUse) read(d *strictjson.Decoder) error {
	*m = PromptUse{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "name":
			g.see(0)
			m.Name, err = d.String()
		case "vars":
			m.Vars, err = readList(d, (*Var).read)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "name")
}

// AppendJSON appends the message.
func (m *Var) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendStr(b, "name", m.Name)
	b = appendStr(b, "value", m.Value)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *Var) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *Var) read(d *strictjson.Decoder) error {
	*m = Var{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "name":
			g.see(0)
			m.Name, err = d.String()
		case "value":
			g.see(1)
			m.Value, err = d.String()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "name", "value")
}

// AppendJSON appends the message.
func (m *ToolCall) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendStr(b, "id", m.ID)
	b = appendStr(b, "name", m.Name)
	b = appendStr(b, "arguments", m.Arguments)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *ToolCall) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *ToolCall) read(d *strictjson.Decoder) error {
	*m = ToolCall{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "id":
			g.see(0)
			m.ID, err = d.String()
		case "name":
			g.see(1)
			m.Name, err = d.String()
		case "arguments":
			g.see(2)
			m.Arguments, err = d.String()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "id", "name", "arguments")
}

// AppendJSON appends "all" or the array of names.
func (m *ToolSet) AppendJSON(b []byte) []byte {
	if m.All {
		return append(b, `"all"`...)
	}
	return appendStrings(b, m.Names)
}

// DecodeJSON replaces the set by the one that data holds.
func (m *ToolSet) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *ToolSet) read(d *strictjson.Decoder) (err error) {
	*m = ToolSet{}
	if d.Kind() != strictjson.String {
		m.Names, err = readStrings(d)
		return err
	}
	word, err := d.String()
	if err == nil && word != "all" {
		err = &strictjson.Error{Offset: -1, Reason: `expected "all" or an array of names`}
	}
	m.All = true
	return err
}

// MarshalJSON implements json.Marshaler.
func (m ToolSet) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (m *ToolSet) UnmarshalJSON(data []byte) error { return m.DecodeJSON(data) }

func readFloat(f *float64, d *strictjson.Decoder) (err error) {
	*f, err = d.Float()
	return err
}
