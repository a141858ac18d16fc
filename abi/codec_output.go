package abi

import "weir/abi/strictjson"

// outputNames are the names of this file's messages.
var outputNames = struct {
	now, seed, use, streamPos, before, text, texts, final, state, matches, open, edits, holdFrom, cut, index, start, end, replace, label, at, notice strictjson.Name
}{
	now:       strictjson.NameOf("now"),
	seed:      strictjson.NameOf("seed"),
	use:       strictjson.NameOf("use"),
	streamPos: strictjson.NameOf("stream_pos"),
	before:    strictjson.NameOf("before"),
	text:      strictjson.NameOf("text"),
	texts:     strictjson.NameOf("texts"),
	final:     strictjson.NameOf("final"),
	state:     strictjson.NameOf("state"),
	matches:   strictjson.NameOf("matches"),
	open:      strictjson.NameOf("open"),
	edits:     strictjson.NameOf("edits"),
	holdFrom:  strictjson.NameOf("hold_from"),
	cut:       strictjson.NameOf("cut"),
	index:     strictjson.NameOf("index"),
	start:     strictjson.NameOf("start"),
	end:       strictjson.NameOf("end"),
	replace:   strictjson.NameOf("replace"),
	label:     strictjson.NameOf("label"),
	at:        strictjson.NameOf("at"),
	notice:    strictjson.NameOf("notice"),
}

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
func (m *CheckOutputRequest) DecodeJSON(data []byte) error { return decode(data, m.ReadJSON) }

// ReadJSON reads the message from a decoder. It uses the room that Matches has.
func (m *CheckOutputRequest) ReadJSON(d *strictjson.Decoder) error {
	room := m.Matches[:0]
	*m = CheckOutputRequest{}
	if m.readInOrder(d, room) {
		return nil
	}
	*m = CheckOutputRequest{}
	return m.readInAnyOrder(d)
}

func (m *CheckOutputRequest) readInOrder(d *strictjson.Decoder, room []int) bool {
	o := inOrder(d)
	o.int64(&outputNames.now, &m.Now)
	o.str(&outputNames.seed, &m.Seed)
	o.optStr(&outputNames.use, &m.Use)
	o.int64(&outputNames.streamPos, &m.StreamPos)
	o.optStr(&outputNames.before, &m.Before)
	o.str(&outputNames.text, &m.Text)
	if o.next(&outputNames.texts) {
		list, err := readStrings(d)
		m.Texts, o.bad = list, err != nil
	}
	o.optBool(&outputNames.final, &m.Final)
	o.optRaw(&outputNames.state, &m.State)
	if o.next(&outputNames.matches) {
		list, err := readInts(d, room)
		m.Matches, o.bad = list, err != nil
	}
	o.optInt(&outputNames.open, &m.Open)
	return o.end()
}

func (m *CheckOutputRequest) readInAnyOrder(d *strictjson.Decoder) error {
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
			m.Matches, err = readInts(d, nil)
		case "open":
			m.Open, err = readInt(d)
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	return g.check(err, "now", "seed", "stream_pos", "text")
}

// AppendJSON appends the message. It is written for a guest, in which every
// call of a function counts.
func (m *CheckOutputReply) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	for i := range m.Edits {
		if i == 0 {
			b = append(b, `"edits":[`...)
		} else {
			b = append(b, ',')
		}
		b = m.Edits[i].AppendJSON(b)
	}
	if len(m.Edits) > 0 {
		b = append(b, `],"hold_from":`...)
	} else {
		b = append(b, `"hold_from":`...)
	}
	b = strictjson.AppendInt(b, int64(m.HoldFrom))
	if m.Cut != nil {
		b = m.Cut.AppendJSON(append(b, `,"cut":`...))
	}
	b = appendOptRaw(b, "state", m.State)
	return append(b, '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *CheckOutputReply) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *CheckOutputReply) read(d *strictjson.Decoder) error {
	*m = CheckOutputReply{}
	if m.readInOrder(d) {
		return nil
	}
	*m = CheckOutputReply{}
	return m.readInAnyOrder(d)
}

func (m *CheckOutputReply) readInOrder(d *strictjson.Decoder) bool {
	o := inOrder(d)
	if o.next(&outputNames.edits) {
		list, err := readList(d, (*Edit).read)
		m.Edits, o.bad = list, err != nil
	}
	o.int(&outputNames.holdFrom, &m.HoldFrom)
	if o.next(&outputNames.cut) {
		cut, err := readNew(d, (*Cut).read)
		m.Cut, o.bad = cut, err != nil
	}
	o.optRaw(&outputNames.state, &m.State)
	return o.end()
}

func (m *CheckOutputReply) readInAnyOrder(d *strictjson.Decoder) error {
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
	if m.Index != 0 {
		b = append(appendInt(append(b, '{'), "index", m.Index), `,"start":`...)
	} else {
		b = append(b, `{"start":`...)
	}
	b = append(strictjson.AppendInt(b, int64(m.Start)), `,"end":`...)
	b = append(strictjson.AppendInt(b, int64(m.End)), `,"replace":`...)
	b = append(strictjson.AppendString(b, m.Replace), `,"label":`...)
	return append(strictjson.AppendString(b, m.Label), '}')
}

// DecodeJSON replaces the message by the one that data holds.
func (m *Edit) DecodeJSON(data []byte) error { return decode(data, m.read) }

func (m *Edit) read(d *strictjson.Decoder) error {
	*m = Edit{}
	if m.readInOrder(d) {
		return nil
	}
	*m = Edit{}
	return m.readInAnyOrder(d)
}

func (m *Edit) readInOrder(d *strictjson.Decoder) bool {
	o := inOrder(d)
	o.optInt(&outputNames.index, &m.Index)
	o.int(&outputNames.start, &m.Start)
	o.int(&outputNames.end, &m.End)
	o.str(&outputNames.replace, &m.Replace)
	o.str(&outputNames.label, &m.Label)
	return o.end()
}

func (m *Edit) readInAnyOrder(d *strictjson.Decoder) error {
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
	if m.readInOrder(d) {
		return nil
	}
	*m = Cut{}
	return m.readInAnyOrder(d)
}

func (m *Cut) readInOrder(d *strictjson.Decoder) bool {
	o := inOrder(d)
	o.int(&outputNames.at, &m.At)
	o.str(&outputNames.notice, &m.Notice)
	o.str(&outputNames.label, &m.Label)
	return o.end()
}

func (m *Cut) readInAnyOrder(d *strictjson.Decoder) error {
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
