package guard

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const oversizeMark = "[oversize]"

// oracle is Guard(T) straight from DECISIONS 2, rules 1 to 3: all edits and
// cuts of the whole text, merged once. Limit is the output bound in characters.
func oracle(fs []*fake, text string, limit int) string {
	text = string([]rune(text))
	runes := []rune(text)
	over := len(runes) > limit
	if over {
		text = string(runes[:limit])
	}
	type owned struct {
		start, end, chain int
		replace           string
	}
	var edits []owned
	stop, notice := -1, ""
	undecided := len(text)
	for i, f := range fs {
		for _, e := range f.edits(text) {
			edits = append(edits, owned{e.Start, e.End, i, e.Replace})
		}
		hold := f.hold(text)
		if c, ok := f.cut(text); ok && (!over || c.At <= hold) {
			if stop < 0 || c.At < stop {
				stop, notice = c.At, c.Notice
			}
		} else {
			undecided = min(undecided, hold)
		}
	}
	if over && (stop < 0 || undecided < stop) {
		stop, notice = undecided, oversizeMark
	}
	slices.SortStableFunc(edits, func(a, b owned) int {
		if a.start != b.start {
			return a.start - b.start
		}
		if a.end != b.end {
			return b.end - a.end
		}
		return a.chain - b.chain
	})
	out, pos := "", 0
	for _, e := range edits {
		if e.start < pos || stop >= 0 && e.start >= stop {
			continue
		}
		out += text[pos:e.start] + e.replace
		pos = e.end
	}
	if stop < 0 {
		return out + text[pos:]
	}
	if pos < stop {
		out += text[pos:stop]
	}
	return out + notice
}

func chainOf(t testing.TB, fs []*fake, limit int) *Chain {
	t.Helper()
	var guards []Guard
	for _, f := range fs {
		guards = append(guards, f.guard())
	}
	c, err := New(guards, Options{MaxOutputChars: limit, OversizeNotice: oversizeMark})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// drive pushes pieces through a sink, one look a piece, and checks after every
// piece that what was released is the beginning of want.
func drive(t testing.TB, c *Chain, pieces []string, want string) {
	t.Helper()
	driveSynced(t, c, pieces, want, func(int) bool { return true })
}

// driveSynced is drive with a Sync only after some pieces; the others may go
// together in one look, and the last with the end of the text.
func driveSynced(t testing.TB, c *Chain, pieces []string, want string, synced func(int) bool) {
	t.Helper()
	var got strings.Builder
	s := c.Session(SessionOptions{Stamp: stamp, Release: func(text string) {
		checkFragment(t, text)
		got.WriteString(text)
	}})
	sink := s.Sink()
	for i, p := range pieces {
		sink.Push(p)
		if !synced(i) {
			continue
		}
		if err := sink.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(want, got.String()) {
			t.Fatalf("after %d of %q: released %q, which does not begin %q", i+1, pieces, got.String(), want)
		}
	}
	sink.Finish(context.Background())
	if got.String() != want {
		t.Fatalf("pieces %q: released %q, want %q", pieces, got.String(), want)
	}
}

// checkFragment pins 10.5.5 and that no character is split.
func checkFragment(t testing.TB, text string) {
	t.Helper()
	trimmed := strings.TrimSpace(text)
	switch {
	case text == "":
		t.Error("an empty fragment was released")
	case !utf8.ValidString(text):
		t.Errorf("fragment %q splits a character", text)
	case (trimmed[:min(1, len(trimmed))] == "{" || trimmed[:min(1, len(trimmed))] == "[") && json.Valid([]byte(trimmed)):
		t.Errorf("fragment %q is a lone JSON container", text)
	}
}

func bytewise(text string) []string {
	pieces := make([]string, len(text))
	for i := range pieces {
		pieces[i] = text[i : i+1]
	}
	return pieces
}

func randomSplit(r *rand.Rand, text string) []string {
	var pieces []string
	for text != "" {
		n := 1 + r.IntN(min(len(text), 12))
		pieces = append(pieces, text[:n])
		text = text[n:]
	}
	return pieces
}

// prove checks one text in every two-way split, byte by byte and in a few
// random splits.
func prove(t testing.TB, r *rand.Rand, fs []*fake, text string, limit int) {
	t.Helper()
	c := chainOf(t, fs, limit)
	want := oracle(fs, text, limit)
	drive(t, c, []string{text}, want)
	drive(t, c, bytewise(text), want)
	for i := 1; i < len(text); i++ {
		drive(t, c, []string{text[:i], text[i:]}, want)
	}
	driveSynced(t, c, []string{text}, want, func(int) bool { return false })
	for range 3 {
		drive(t, c, randomSplit(r, text), want)
		driveSynced(t, c, randomSplit(r, text), want, func(int) bool { return r.IntN(2) == 0 })
	}
}

// DECISIONS 2, the promise: the concatenation of what was released equals
// Guard(T) for every chunking; FAULTS S1 and S2.
func TestGuardedStreamEqualsGuardedWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	n := 600
	if testing.Short() {
		n = 200
	}
	for range n {
		limit := 1000
		if r.IntN(3) == 0 {
			limit = 1 + r.IntN(40)
		}
		prove(t, r, randomChain(r), randomText(r, 25), limit)
	}
}

// Invalid bytes become U+FFFD, one a byte, wherever the pieces were cut.
func TestPromiseHoldsForInvalidBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	alphabet := []byte("ab1*\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9\xff\xc0\xed\xa0")
	for range 200 {
		b := make([]byte, r.IntN(30))
		for i := range b {
			b[i] = alphabet[r.IntN(len(alphabet))]
		}
		prove(t, r, randomChain(r), string(b), 1+r.IntN(40))
	}
}

func FuzzPromise(f *testing.F) {
	f.Add(uint64(1), "abc*€123 4567 abcab", uint16(1000))
	f.Add(uint64(7), "a€\xf0\x9f\x98", uint16(3))
	f.Add(uint64(9), `{"a":[1,2]}`, uint16(8))
	f.Fuzz(func(t *testing.T, seed uint64, text string, limit uint16) {
		if len(text) > 100 {
			text = text[:100]
		}
		r := rand.New(rand.NewPCG(seed, 5))
		prove(t, r, randomChain(r), text, 1+int(limit))
	})
}
