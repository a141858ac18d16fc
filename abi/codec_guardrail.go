package abi

import "weir/abi/strictjson"

func (m *Call) append(b []byte) []byte {
	b = strictjson.AppendInt(appendKey(b, "now"), m.Now)
	b = appendStr(b, "seed", m.Seed)
	return b
}

// member reads the member name, which is one of this part's.
func (m *Call) member(name string, g *got, d *strictjson.Decoder) (err error) {
	switch name {
	case "now":
		g.see(0)
		m.Now, err = d.Int()
	case "seed":
		g.see(1)
		m.Seed, err = d.String()
	}
	return err
}

// AppendJSON appends the message.
func (m *Turn) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendStr(b, "role", m.Role)
	b = appendStr(b, "content", m.Content)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *Turn) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *Turn) read(d *strictjson.Decoder) error {
	*m = Turn{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "role":
			g.see(0)
			m.Role, err = d.String()
		case "content":
			g.see(1)
			m.Content, err = d.String()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "role", "content")
}

func (m *Ask) append(b []byte) []byte {
	b = appendOptRaw(b, "state", m.State)
	if m.Reply != nil {
		b = m.Reply.AppendJSON(appendKey(b, "reply"))
	}
	return b
}

// member reads the member name, which is one of this part's.
func (m *Ask) member(name string, d *strictjson.Decoder) (err error) {
	switch name {
	case "state":
		m.State, err = readRaw(d)
	case "reply":
		m.Reply, err = readNew(d, (*AskReply).read)
	}
	return err
}

// AppendJSON appends the message.
func (m *AskReply) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendOptStr(b, "text", m.Text)
	b = appendOptStr(b, "failed", m.Failed)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *AskReply) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *AskReply) read(d *strictjson.Decoder) error {
	*m = AskReply{}
	return d.Object(func(name string) (err error) {
		switch name {
		case "text":
			m.Text, err = d.String()
		case "failed":
			m.Failed, err = d.String()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
}

// AppendJSON appends the message.
func (m *CheckInputRequest) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = m.Call.append(b)
	b = appendStr(b, "text", m.Text)
	b = appendList(b, "history", m.History, (*Turn).AppendJSON)
	b = appendOptStrings(b, "roles", m.Roles)
	b = m.Ask.append(b)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *CheckInputRequest) DecodeJSON(data []byte) error { return decode(data, m.ReadJSON) }

// ReadJSON reads the message from a decoder.
func (m *CheckInputRequest) ReadJSON(d *strictjson.Decoder) error {
	*m = CheckInputRequest{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "now", "seed":
			err = m.Call.member(name, &g, d)
		case "text":
			g.see(2)
			m.Text, err = d.String()
		case "history":
			g.see(3)
			m.History, err = readList(d, (*Turn).read)
		case "roles":
			m.Roles, err = readStrings(d)
		case "state", "reply":
			err = m.Ask.member(name, d)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "now", "seed", "text", "history")
}

// AppendJSON appends the message.
func (m *CheckToolCallRequest) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = m.Call.append(b)
	b = appendStr(b, "tool", m.Tool)
	b = appendObject(b, "arguments", m.Arguments)
	b = appendBool(b, "read_only", m.ReadOnly)
	b = appendStr(b, "text", m.Text)
	b = appendOptStrings(b, "roles", m.Roles)
	b = m.Ask.append(b)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *CheckToolCallRequest) DecodeJSON(data []byte) error { return decode(data, m.ReadJSON) }

// ReadJSON reads the message from a decoder.
func (m *CheckToolCallRequest) ReadJSON(d *strictjson.Decoder) error {
	*m = CheckToolCallRequest{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "now", "seed":
			err = m.Call.member(name, &g, d)
		case "tool":
			g.see(2)
			m.Tool, err = d.String()
		case "arguments":
			g.see(3)
			m.Arguments, err = readObject(d)
		case "read_only":
			g.see(4)
			m.ReadOnly, err = d.Bool()
		case "text":
			g.see(5)
			m.Text, err = d.String()
		case "roles":
			m.Roles, err = readStrings(d)
		case "state", "reply":
			err = m.Ask.member(name, d)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "now", "seed", "tool", "arguments", "read_only", "text")
}

// AppendJSON appends the message.
func (m *CheckToolResultRequest) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = m.Call.append(b)
	b = appendStr(b, "tool", m.Tool)
	b = appendObject(b, "arguments", m.Arguments)
	b = appendStr(b, "result", m.Result)
	b = appendOptBool(b, "failed", m.Failed)
	b = appendOptStrings(b, "roles", m.Roles)
	b = m.Ask.append(b)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *CheckToolResultRequest) DecodeJSON(data []byte) error { return decode(data, m.ReadJSON) }

// ReadJSON reads the message from a decoder.
func (m *CheckToolResultRequest) ReadJSON(d *strictjson.Decoder) error {
	*m = CheckToolResultRequest{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "now", "seed":
			err = m.Call.member(name, &g, d)
		case "tool":
			g.see(2)
			m.Tool, err = d.String()
		case "arguments":
			g.see(3)
			m.Arguments, err = readObject(d)
		case "result":
			g.see(4)
			m.Result, err = d.String()
		case "failed":
			m.Failed, err = d.Bool()
		case "roles":
			m.Roles, err = readStrings(d)
		case "state", "reply":
			err = m.Ask.member(name, d)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "now", "seed", "tool", "arguments", "result")
}

// AppendJSON appends the message.
func (m *Verdict) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendStr(b, "verdict", m.Verdict)
	b = appendOptStr(b, "message", m.Message)
	b = appendOptStr(b, "reason_code", m.ReasonCode)
	b = appendOptStr(b, "reason", m.Reason)
	b = appendOptRaw(b, "decision", m.Decision)
	if m.Ask != nil {
		b = m.Ask.AppendJSON(appendKey(b, "ask"))
	}
	b = appendOptRaw(b, "state", m.State)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *Verdict) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *Verdict) read(d *strictjson.Decoder) error {
	*m = Verdict{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "verdict":
			g.see(0)
			m.Verdict, err = d.String()
		case "message":
			m.Message, err = d.String()
		case "reason_code":
			m.ReasonCode, err = d.String()
		case "reason":
			m.Reason, err = d.String()
		case "decision":
			m.Decision, err = readObject(d)
		case "ask":
			m.Ask, err = readNew(d, (*ModelRequest).read)
		case "state":
			m.State, err = readRaw(d)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "verdict")
}
