package abi

import "weir/abi/strictjson"

// AppendJSON appends the message.
func (m *DescribeRequest) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = m.Call.append(b)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *DescribeRequest) DecodeJSON(data []byte) error { return decode(data, m.ReadJSON) }

// ReadJSON reads the message from a decoder.
func (m *DescribeRequest) ReadJSON(d *strictjson.Decoder) error {
	*m = DescribeRequest{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "now", "seed":
			err = m.Call.member(name, &g, d)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "now", "seed")
}

// AppendJSON appends the message.
func (m *Description) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendStr(b, "name", m.Name)
	b = appendStr(b, "version", m.Version)
	b = appendInt(b, "abi", m.ABI)
	b = appendStr(b, "kind", m.Kind)
	b = appendOptStr(b, "summary", m.Summary)
	b = appendOptRaw(b, "config_schema", m.ConfigSchema)
	if m.Limits != nil {
		b = m.Limits.AppendJSON(appendKey(b, "limits"))
	}
	b = appendOptStrings(b, "prompts", m.Prompts)
	b = appendOptList(b, "skills", m.Skills, (*Skill).AppendJSON)
	b = appendOptList(b, "cases", m.Cases, (*Case).AppendJSON)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *Description) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *Description) read(d *strictjson.Decoder) error {
	*m = Description{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "name":
			g.see(0)
			m.Name, err = d.String()
		case "version":
			g.see(1)
			m.Version, err = d.String()
		case "abi":
			g.see(2)
			m.ABI, err = readInt(d)
		case "kind":
			g.see(3)
			m.Kind, err = d.String()
		case "summary":
			m.Summary, err = d.String()
		case "config_schema":
			m.ConfigSchema, err = readObject(d)
		case "limits":
			m.Limits, err = readNew(d, (*Limits).read)
		case "prompts":
			m.Prompts, err = readStrings(d)
		case "skills":
			m.Skills, err = readList(d, (*Skill).read)
		case "cases":
			m.Cases, err = readList(d, (*Case).read)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "name", "version", "abi", "kind")
}

// AppendJSON appends the message.
func (m *Limits) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendOptInt(b, "memory_mib", m.MemoryMiB)
	b = appendOptInt(b, "timeout_ms", m.TimeoutMS)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *Limits) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *Limits) read(d *strictjson.Decoder) error {
	*m = Limits{}
	return d.Object(func(name string) (err error) {
		switch name {
		case "memory_mib":
			m.MemoryMiB, err = readInt(d)
		case "timeout_ms":
			m.TimeoutMS, err = readInt(d)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
}

// AppendJSON appends the message.
func (m *Skill) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendStr(b, "id", m.ID)
	b = appendStr(b, "name", m.Name)
	b = appendStr(b, "description", m.Description)
	b = appendOptStrings(b, "tags", m.Tags)
	b = appendOptStrings(b, "examples", m.Examples)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *Skill) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *Skill) read(d *strictjson.Decoder) error {
	*m = Skill{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "id":
			g.see(0)
			m.ID, err = d.String()
		case "name":
			g.see(1)
			m.Name, err = d.String()
		case "description":
			g.see(2)
			m.Description, err = d.String()
		case "tags":
			m.Tags, err = readStrings(d)
		case "examples":
			m.Examples, err = readStrings(d)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "id", "name", "description")
}

// AppendJSON appends the message.
func (m *Case) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendStr(b, "name", m.Name)
	b = appendStr(b, "hook", string(m.Hook))
	b = appendObject(b, "request", m.Request)
	b = appendObject(b, "expect", m.Expect)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *Case) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *Case) read(d *strictjson.Decoder) error {
	*m = Case{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "name":
			g.see(0)
			m.Name, err = d.String()
		case "hook":
			g.see(1)
			err = readHook(&m.Hook, d)
		case "request":
			g.see(2)
			m.Request, err = readObject(d)
		case "expect":
			g.see(3)
			m.Expect, err = readObject(d)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "name", "hook", "request", "expect")
}

// AppendJSON appends the message.
func (m *ConfigureRequest) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = m.Call.append(b)
	b = appendObject(b, "config", m.Config)
	b = appendOptList(b, "prompts", m.Prompts, (*Prompt).AppendJSON)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *ConfigureRequest) DecodeJSON(data []byte) error { return decode(data, m.ReadJSON) }

// ReadJSON reads the message from a decoder.
func (m *ConfigureRequest) ReadJSON(d *strictjson.Decoder) error {
	*m = ConfigureRequest{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "now", "seed":
			err = m.Call.member(name, &g, d)
		case "config":
			g.see(2)
			m.Config, err = readObject(d)
		case "prompts":
			m.Prompts, err = readList(d, (*Prompt).read)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "now", "seed", "config")
}

// AppendJSON appends the message.
func (m *Prompt) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendStr(b, "name", m.Name)
	b = appendStr(b, "text", m.Text)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *Prompt) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *Prompt) read(d *strictjson.Decoder) error {
	*m = Prompt{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "name":
			g.see(0)
			m.Name, err = d.String()
		case "text":
			g.see(1)
			m.Text, err = d.String()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "name", "text")
}

// AppendJSON appends the message.
func (m *ConfigureReply) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendOptStr(b, "error", m.Error)
	b = appendOptList(b, "patterns", m.Patterns, (*Pattern).AppendJSON)
	b = appendOptBool(b, "send_matches", m.SendMatches)
	b = appendOptInt(b, "look_behind", m.LookBehind)
	b = appendOptInt(b, "hold_back", m.HoldBack)
	b = appendOptStrings(b, "prompts", m.Prompts)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *ConfigureReply) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *ConfigureReply) read(d *strictjson.Decoder) error {
	*m = ConfigureReply{}
	return d.Object(func(name string) (err error) {
		switch name {
		case "error":
			m.Error, err = d.String()
		case "patterns":
			m.Patterns, err = readList(d, (*Pattern).read)
		case "send_matches":
			m.SendMatches, err = d.Bool()
		case "look_behind":
			m.LookBehind, err = readInt(d)
		case "hold_back":
			m.HoldBack, err = readInt(d)
		case "prompts":
			m.Prompts, err = readStrings(d)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
}

// AppendJSON appends the message.
func (m *Pattern) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendStr(b, "id", m.ID)
	b = appendStr(b, "expr", m.Expr)
	b = appendOptInt(b, "bound", m.Bound)
	b = appendOptBool(b, "minimal", m.Minimal)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *Pattern) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *Pattern) read(d *strictjson.Decoder) error {
	*m = Pattern{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "id":
			g.see(0)
			m.ID, err = d.String()
		case "expr":
			g.see(1)
			m.Expr, err = d.String()
		case "bound":
			m.Bound, err = readInt(d)
		case "minimal":
			m.Minimal, err = d.Bool()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "id", "expr")
}

func readHook(h *Hook, d *strictjson.Decoder) error {
	s, err := d.String()
	*h = Hook(s)
	return err
}
