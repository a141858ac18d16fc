package model

import (
	"crypto/rand"
	"encoding/json"
	"strings"

	"weir/abi"
)

// maxCalls bounds the tool calls of one reply.
const maxCalls = 256

// assembly puts the chunks of one reply together.
type assembly struct {
	limit  int // bytes of text, names and arguments
	size   int
	text   strings.Builder
	half   joiner
	calls  []*toolCall // in the order of their first part
	finish string
	usage  Usage
}

type toolCall struct {
	index     int // -1: the provider gave none
	id        string
	name      string
	arguments strings.Builder
	half      joiner
}

// event takes one event of a stream.
func (a *assembly) event(kind, data string, onText func(string)) error {
	if kind == "error" {
		return bad("the stream carries an error")
	}
	c, err := decodeChunk([]byte(data))
	if err != nil {
		return err
	}
	return a.add(&c, onText)
}

// add takes one chunk.
func (a *assembly) add(c *chunk, onText func(string)) error {
	if c.failed || c.finish == "error" {
		return bad("the reply carries an error")
	}
	a.size += len(c.text)
	var touched []*toolCall
	for i := range c.calls {
		part := &c.calls[i]
		a.size += len(part.id) + len(part.name) + len(part.arguments)
		touched = append(touched, a.part(part, touched, c.marked))
	}
	if a.size > a.limit || len(a.calls) > maxCalls {
		return bad("the reply is over the limit")
	}
	if a.finish == "" {
		a.finish = c.finish
	}
	if c.usage != (Usage{}) {
		a.usage = c.usage
	}
	a.say(a.half.join(c.text, c.marked), onText)
	return nil
}

func (a *assembly) say(text string, onText func(string)) {
	if text != "" {
		a.text.WriteString(text)
		onText(text)
	}
}

// part adds a part to the call that it belongs to, which may be a new one.
// Touched are the calls that the same chunk has added to already.
func (a *assembly) part(p *callPart, touched []*toolCall, marked bool) *toolCall {
	t := a.find(p)
	if t == nil || t.complete(p, touched) {
		t = &toolCall{index: p.index}
		a.calls = append(a.calls, t)
	}
	if t.id == "" {
		t.id = p.id
	}
	if p.name != t.name { // some providers repeat the name in every part, some send it in pieces
		t.name += p.name
	}
	t.arguments.WriteString(t.half.join(p.arguments, marked))
	return t
}

// find returns the latest call that the part can belong to: the one of its
// index, else the one of its id, else the last of all.
func (a *assembly) find(p *callPart) *toolCall {
	for i := len(a.calls) - 1; i >= 0; i-- {
		t := a.calls[i]
		switch {
		case p.index >= 0 && t.index >= 0:
			if p.index == t.index {
				return t
			}
		case p.id != "" && t.id != "":
			if p.id == t.id {
				return t
			}
		default:
			return t
		}
	}
	return nil
}

// complete says that t is another call than the one that p is a part of,
// although p has its index or none. Only a part with a name begins a call.
func (t *toolCall) complete(p *callPart, touched []*toolCall) bool {
	if p.name == "" {
		return false
	}
	for _, other := range touched {
		if other == t {
			return true // two parts of one chunk are two calls
		}
	}
	switch {
	case p.id != "" && t.id != "" && p.id != t.id:
		return true
	case t.arguments.Len() == 0:
		return false
	case p.name != t.name:
		return true
	}
	return p.id == "" && json.Valid([]byte(t.arguments.String()))
}

// end returns the reply if it is one. Done says that the provider itself
// called the reply complete.
func (a *assembly) end(done bool, onText func(string)) (*Reply, error) {
	a.say(a.half.end(), onText)
	reply := &Reply{Text: a.text.String(), FinishReason: a.finish, Usage: a.usage}
	seen := make(map[string]bool, len(a.calls))
	for _, t := range a.calls {
		arguments := t.arguments.String() + t.half.end()
		if t.name == "" {
			if arguments == "" {
				continue // an empty part, as some streams end with
			}
			return nil, bad("a tool call has no name")
		}
		if t.id == "" || seen[t.id] {
			t.id = "call_" + rand.Text()
		}
		seen[t.id] = true
		reply.ToolCalls = append(reply.ToolCalls, abi.ToolCall{ID: t.id, Name: t.name, Arguments: arguments})
	}
	if a.finish == "" && !done {
		return nil, bad("the stream ended without a finish reason")
	}
	return reply, nil
}
