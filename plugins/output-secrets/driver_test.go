package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"weir/abi"
)

// driver plays the host's part of the protocol for one stream: text begins at
// the guard's own last hold_from, before is what stands left of it.
type driver struct {
	t        testing.TB
	ask      func(*abi.CheckOutputRequest) *abi.CheckOutputReply
	look     int // bytes
	text     string
	hold     int
	state    abi.Raw
	released strings.Builder
	pieces   int // times that something was released
	cut      *abi.Cut
}

func (g *guard) stream(t testing.TB) *driver {
	return &driver{t: t, ask: func(q *abi.CheckOutputRequest) *abi.CheckOutputReply { return answer(t, g, q) }, look: lookBehind}
}

func answer(t testing.TB, g *guard, q *abi.CheckOutputRequest) *abi.CheckOutputReply {
	t.Helper()
	r, err := g.answer(q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// push hands the guard a piece, which begins and ends between characters.
func (d *driver) push(piece string, final bool) {
	d.t.Helper()
	if d.cut != nil {
		return
	}
	d.text += piece
	q := &abi.CheckOutputRequest{StreamPos: int64(d.hold), Before: lastBytes(d.text[:d.hold], d.look),
		Text: d.text[d.hold:], Final: final, State: d.state}
	r := d.ask(q)
	if err := r.Validate(q); err != nil {
		d.t.Fatalf("the host would refuse the reply to %+v: %v", q, err)
	}
	d.release(r)
}

func (d *driver) release(r *abi.CheckOutputReply) {
	to := d.hold + r.HoldFrom
	if r.Cut != nil && r.Cut.At <= r.HoldFrom {
		d.cut = r.Cut
		to = d.hold + r.Cut.At
	}
	if to > d.hold {
		d.pieces++
	}
	d.released.WriteString(d.text[d.hold:to])
	d.hold, d.state = to, r.State
	if d.cut != nil {
		d.released.WriteString(d.cut.Notice)
	}
}

// lastBytes is the end of s, of at most n bytes and without a partial rune.
func lastBytes(s string, n int) string {
	if len(s) > n {
		s = s[len(s)-n:]
		for s != "" && !utf8.RuneStart(s[0]) {
			s = s[1:]
		}
	}
	return s
}

// all is what a client receives of pieces.
func (g *guard) all(t testing.TB, pieces ...string) (string, *abi.Cut) {
	t.Helper()
	d := g.stream(t)
	for i, p := range pieces {
		d.push(p, i == len(pieces)-1)
	}
	return d.released.String(), d.cut
}

// chars cuts a text into its characters.
func chars(s string) []string { return strings.Split(s, "") }
