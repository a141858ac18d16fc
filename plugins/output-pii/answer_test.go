package main

import (
	"math/rand/v2"
	"strings"
	"testing"

	"weir/abi"
)

// Clause 6.7 and FAULTS S1, S2: the stream is the whole, masked, for one
// character at a time and for every split in two.
func TestEverySplit(t *testing.T) {
	g := load(t, shipped(t))
	lead := strings.Repeat("Zoë wrote a line. ", 19)
	for n, tt := range masked {
		text := "to " + tt.text + ", today"
		want := g.mask(t, text)
		cs := chars(text)
		for i := range cs {
			if got := g.all(t, strings.Join(cs[:i], ""), strings.Join(cs[i:], "")); got != want {
				t.Fatalf("%q split at %d: %q, want %q", text, i, got, want)
			}
		}
		if got := g.all(t, cs...); got != want {
			t.Fatalf("%q one at a time: %q, want %q", text, got, want)
		}
		if n%6 != 0 { // a long text one at a time takes its time
			continue
		}
		if got := g.all(t, chars(text+" "+lead)...); got != want+" "+lead {
			t.Fatalf("%q and more, one at a time: %q", text, got)
		}
	}
}

// Clause 6.7: a clean answer leaves as it comes, a short one at its end.
func TestCleanAnswerStreams(t *testing.T) {
	g := load(t, shipped(t))
	d := g.stream(t)
	sentence := "Ticket TKT-1001 is open since 2026-09-15T09:20:00Z; the café in Zürich waits. "
	for range 120 {
		d.push(sentence, false)
	}
	if d.pieces <= 20 {
		t.Errorf("%d pieces were released before the end, want more than 20", d.pieces)
	}
	d.push("", true)
	if got := d.released.String(); got != strings.Repeat(sentence, 120) {
		t.Error("a clean answer was changed")
	}
}

// What is held back is what may become an entity, and it leaves with the
// character that decides.
func TestHeldIsWhatIsOpen(t *testing.T) {
	g := load(t, shipped(t))
	for _, tt := range []struct{ text, held string }{
		{"write to alice@example.com", "alice@example.com"},
		{"write to alice@example.com ", ""},
		{"write to alice", "alice"},
		{"write to alice,", ""},
		{"order ORD-5510 of 2026-09", "2026-09"},
		{"order ORD-5510 of 2026-09-15T", "2026-09-15T"}, // of an address
		{"at 2026-09-15T09:20", "20"},
		{"card 4111 1111 1111 1112", "4111 1111 1111 1112"},
		{"card 4111 1111 1111 1112, no", "no"},
		{"call +41 44 668 18", "+41 44 668 18"},
		{"use std::", ":"},
		{"use std::vector", "vector"},
	} {
		d := g.stream(t)
		for _, c := range chars(tt.text) {
			d.push(c, false)
		}
		if got := d.text[d.hold:]; got != tt.held {
			t.Errorf("of %q %q is held, want %q", tt.text, got, tt.held)
		}
	}
}

// A long run of digits that is one refused card after the other does not stay.
func TestRefusedMatchesDoNotPileUp(t *testing.T) {
	g := load(t, shipped(t))
	d := g.stream(t)
	for range 200 {
		d.push("1234 5678 9012 3456 ", false)
	}
	if held := len(d.text) - d.hold; held > 400 {
		t.Errorf("%d bytes are held back", held)
	}
	d.push("", true)
	if got, want := d.released.String(), g.mask(t, d.text); got != want {
		t.Errorf("released %q, want %q", got, want)
	}
}

func TestStateIsChecked(t *testing.T) {
	g := load(t, shipped(t))
	for _, state := range []string{`[]`, `[0,0,0,0,0,0,0]`, `[0,0,0,0,0,0,0,0,0]`, `["0"]`, `{}`, `[0,0,0,0,0,0,0,0] 1`} {
		if r, err := g.answer(&abi.CheckOutputRequest{Text: "x", State: abi.Raw(state)}); err == nil {
			t.Errorf("state %s: %+v, want an error", state, r)
		}
	}
}

// FuzzEveryChunking: what a client receives is the whole, masked, whatever the
// pieces.
func FuzzEveryChunking(f *testing.F) {
	for i, tt := range masked {
		f.Add(tt.text, uint64(i))
	}
	for i, text := range plain {
		f.Add(text, uint64(i))
	}
	f.Add("4111 1111 1111 1111 1111 415 555 0132 078-05-1120 415 555 0132", uint64(3))
	f.Add("078-05-1120@x.com ::ffff:1.2.3.4 1.2.3.4.5.6 a@b.c.d@e.fg", uint64(4))
	f.Add("DE89 3704 0044 0532 0130 00 4111 1111 1111 1111 +41 44 668 18 00", uint64(5))
	g := load(f, shipped(f))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		if len(text) > 300 {
			t.Skip()
		}
		text = strings.ToValidUTF8(text, "\ufffd")
		want := g.mask(t, text)
		if got := g.all(t, text); got != want {
			t.Fatalf("%q as a stream %q, as a whole %q", text, got, want)
		}
		if got := g.all(t, pieces(text, seed)...); got != want {
			t.Fatalf("%q in pieces %q, as a whole %q", text, got, want)
		}
	})
}

// pieces cuts text at random, sometimes into nothing.
func pieces(text string, seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 0))
	list := []string{""}
	for _, c := range chars(text) {
		if r.IntN(3) == 0 {
			list = append(list, "")
		}
		list[len(list)-1] += c
	}
	return append(list, "")
}

func BenchmarkAnswer(b *testing.B) {
	g := load(b, shipped(b))
	prose := strings.Repeat("My parcel has not arrived yet, and I was told to show the order number. ", 20)
	q := &abi.CheckOutputRequest{StreamPos: 5000, Before: prose[:512], Text: prose[512:864]}
	b.SetBytes(512 + 352)
	for b.Loop() {
		g.answer(q)
	}
}

func BenchmarkDisplay(b *testing.B) {
	g := load(b, shipped(b))
	text := strings.Repeat("My parcel has not arrived yet, and I was told to show order ORD-5510 of 2026-09-15. ", 12)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		g.display([]string{text})
	}
}
