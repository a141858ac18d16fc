package abi

import "weir/abi/strictjson"

// AppendJSON appends the message.
func (m *CheckOutputRequest) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = m.Call.append(b)
	b = appendOptStr(b, "use", m.Use)
	b = strictjson.AppendInt(appendKey(b, "stream_pos"), m.StreamPos)
	b = appendOptStr(b, "before", m.Before)
	b = appendStr(b, "text", m.Text)
	b = appendOptStrings(b, "texts", m.Texts)
	b = appendOptBool(b, "final", m.Final)
	b = appendOptRaw(b, "state", m.State)
	b = appendOptInts(b, "matches", m.Matches)
	b = appendOptInt(b, "open", m.Open)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *CheckOutputRequest) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *CheckOutputRequest) read(d *strictjson.Decoder) error {
	*m = CheckOutputRequest{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "now", "seed":
			err = m.Call.member(name, &g, d)
		case "use":
			m.Use, err = d.String()
		case "stream_pos":
			g.see(2)
			m.StreamPos, err = d.Int()
		case "before":
			m.Before, err = d.String()
		case "text":
			g.see(3)
			m.Text, err = d.String()
		case "texts":
			m.Texts, err = readStrings(d)
		case "final":
			m.Final, err = d.Bool()
		case "state":
			m.State, err = readRaw(d)
		case "matches":
			m.Matches, err = readInts(d)
		case "open":
			m.Open, err = readInt(d)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "now", "seed", "stream_pos", "text")
}

// AppendJSON appends the message.
func (m *CheckOutputReply) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendOptList(b, "edits", m.Edits, (*Edit).AppendJSON)
	b = appendInt(b, "hold_from", m.HoldFrom)
	if m.Cut != nil {
		b = m.Cut.AppendJSON(appendKey(b, "cut"))
	}
	b = appendOptRaw(b, "state", m.State)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *CheckOutputReply) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *CheckOutputReply) read(d *strictjson.Decoder) error {
	*m = CheckOutputReply{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "edits":
			m.Edits, err = readList(d, (*Edit).read)
		case "hold_from":
			g.see(0)
			m.HoldFrom, err = readInt(d)
		case "cut":
			m.Cut, err = readNew(d, (*Cut).read)
		case "state":
			m.State, err = readRaw(d)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "hold_from")
}

// AppendJSON appends the message.
func (m *Edit) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendOptInt(b, "index", m.Index)
	b = appendInt(b, "start", m.Start)
	b = appendInt(b, "end", m.End)
	b = appendStr(b, "replace", m.Replace)
	b = appendStr(b, "label", m.Label)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *Edit) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *Edit) read(d *strictjson.Decoder) error {
	*m = Edit{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "index":
			m.Index, err = readInt(d)
		case "start":
			g.see(0)
			m.Start, err = readInt(d)
		case "end":
			g.see(1)
			m.End, err = readInt(d)
		case "replace":
			g.see(2)
			m.Replace, err = d.String()
		case "label":
			g.see(3)
			m.Label, err = d.String()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "start", "end", "replace", "label")
}

// AppendJSON appends the message.
func (m *Cut) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendInt(b, "at", m.At)
	b = appendStr(b, "notice", m.Notice)
	b = appendStr(b, "label", m.Label)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *Cut) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *Cut) read(d *strictjson.Decoder) error {
	*m = Cut{}
	var g got
	err := d.Object(func(name string) (err error) {
		switch name {
		case "at":
			g.see(0)
			m.At, err = readInt(d)
		case "notice":
			g.see(1)
			m.Notice, err = d.String()
		case "label":
			g.see(2)
			m.Label, err = d.String()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "at", "notice", "label")
}
