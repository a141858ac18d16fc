package abi

import "weir/abi/strictjson"

// AppendJSON appends the message.
func (m *StepRequest) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = m.Call.append(b)
	b = appendOptRaw(b, "state", m.State)
	b = m.Event.AppendJSON(appendKey(b, "event"))
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *StepRequest) DecodeJSON(data []byte) error { return decode(data, m.ReadJSON) }

// ReadJSON reads the message from a decoder.
func (m *StepRequest) ReadJSON(d *strictjson.Decoder) error {
	*m = StepRequest{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "now", "seed":
			err = m.Call.member(name, &g, d)
		case "state":
			m.State, err = readRaw(d)
		case "event":
			g.see(2)
			err = m.Event.read(d)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "now", "seed", "event")
}

// AppendJSON appends the message.
func (m *StepReply) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendOptRaw(b, "state", m.State)
	b = m.Action.AppendJSON(appendKey(b, "action"))
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *StepReply) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *StepReply) read(d *strictjson.Decoder) error {
	*m = StepReply{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "state":
			m.State, err = readRaw(d)
		case "action":
			g.see(0)
			err = m.Action.read(d)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "action")
}

// AppendJSON appends the message.
func (m *Event) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendStr(b, "type", m.Type)
	b = appendInt(b, "tool_calls_left", m.ToolCallsLeft)
	b = appendInt(b, "model_calls_left", m.ModelCallsLeft)
	b = appendOptList(b, "turns", m.Turns, (*Turn).AppendJSON)
	b = appendOptList(b, "tools", m.Tools, (*ToolInfo).AppendJSON)
	b = appendOptInt(b, "ref", m.Ref)
	b = appendOptStr(b, "text", m.Text)
	b = appendOptList(b, "tool_calls", m.ToolCalls, (*ToolCall).AppendJSON)
	b = appendOptStr(b, "code", m.Code)
	b = appendOptList(b, "results", m.Results, (*ToolResult).AppendJSON)
	b = appendOptStr(b, "outcome", m.Outcome)
	b = appendOptStr(b, "answer", m.Answer)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *Event) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *Event) read(d *strictjson.Decoder) error {
	*m = Event{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "type":
			g.see(0)
			m.Type, err = d.String()
		case "tool_calls_left":
			g.see(1)
			m.ToolCallsLeft, err = readInt(d)
		case "model_calls_left":
			g.see(2)
			m.ModelCallsLeft, err = readInt(d)
		case "turns":
			m.Turns, err = readList(d, (*Turn).read)
		case "tools":
			m.Tools, err = readList(d, (*ToolInfo).read)
		case "ref":
			m.Ref, err = readInt(d)
		case "text":
			m.Text, err = d.String()
		case "tool_calls":
			m.ToolCalls, err = readList(d, (*ToolCall).read)
		case "code":
			m.Code, err = d.String()
		case "results":
			m.Results, err = readList(d, (*ToolResult).read)
		case "outcome":
			m.Outcome, err = d.String()
		case "answer":
			m.Answer, err = d.String()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "type", "tool_calls_left", "model_calls_left")
}

// AppendJSON appends the message.
func (m *ToolInfo) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendStr(b, "name", m.Name)
	b = appendStr(b, "description", m.Description)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *ToolInfo) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *ToolInfo) read(d *strictjson.Decoder) error {
	*m = ToolInfo{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "name":
			g.see(0)
			m.Name, err = d.String()
		case "description":
			g.see(1)
			m.Description, err = d.String()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "name", "description")
}

// AppendJSON appends the message.
func (m *ToolResult) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendInt(b, "ref", m.Ref)
	b = appendStr(b, "call_id", m.CallID)
	b = appendStr(b, "name", m.Name)
	b = appendStr(b, "text", m.Text)
	b = appendOptBool(b, "failed", m.Failed)
	b = appendOptBool(b, "refused", m.Refused)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *ToolResult) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *ToolResult) read(d *strictjson.Decoder) error {
	*m = ToolResult{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "ref":
			g.see(0)
			m.Ref, err = readInt(d)
		case "call_id":
			g.see(1)
			m.CallID, err = d.String()
		case "name":
			g.see(2)
			m.Name, err = d.String()
		case "text":
			g.see(3)
			m.Text, err = d.String()
		case "failed":
			m.Failed, err = d.Bool()
		case "refused":
			m.Refused, err = d.Bool()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "ref", "call_id", "name", "text")
}

// AppendJSON appends the message.
func (m *Action) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendStr(b, "type", m.Type)
	if m.Request != nil {
		b = m.Request.AppendJSON(appendKey(b, "request"))
	}
	b = appendOptList(b, "calls", m.Calls, (*ToolCall).AppendJSON)
	if m.Ask != nil {
		b = m.Ask.AppendJSON(appendKey(b, "ask"))
	}
	b = appendOptStr(b, "text", m.Text)
	b = appendOptStr(b, "reason", m.Reason)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *Action) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *Action) read(d *strictjson.Decoder) error {
	*m = Action{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "type":
			g.see(0)
			m.Type, err = d.String()
		case "request":
			m.Request, err = readNew(d, (*ModelRequest).read)
		case "calls":
			m.Calls, err = readList(d, (*ToolCall).read)
		case "ask":
			m.Ask, err = readNew(d, (*AskHuman).read)
		case "text":
			m.Text, err = d.String()
		case "reason":
			m.Reason, err = d.String()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "type")
}

// AppendJSON appends the message.
func (m *AskHuman) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendStr(b, "kind", m.Kind)
	b = appendStr(b, "text", m.Text)
	b = appendOptStr(b, "placeholder", m.Placeholder)
	b = appendOptList(b, "options", m.Options, (*Option).AppendJSON)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *AskHuman) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *AskHuman) read(d *strictjson.Decoder) error {
	*m = AskHuman{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "kind":
			g.see(0)
			m.Kind, err = d.String()
		case "text":
			g.see(1)
			m.Text, err = d.String()
		case "placeholder":
			m.Placeholder, err = d.String()
		case "options":
			m.Options, err = readList(d, (*Option).read)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "kind", "text")
}

// AppendJSON appends the message.
func (m *Option) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendStr(b, "id", m.ID)
	b = appendStr(b, "label", m.Label)
	b = appendStr(b, "value", m.Value)
	b = appendOptStr(b, "description", m.Description)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *Option) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *Option) read(d *strictjson.Decoder) error {
	*m = Option{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "id":
			g.see(0)
			m.ID, err = d.String()
		case "label":
			g.see(1)
			m.Label, err = d.String()
		case "value":
			g.see(2)
			m.Value, err = d.String()
		case "description":
			m.Description, err = d.String()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "id", "label", "value")
}
