package guard

import (
	"context"
	"strings"
	"testing"

	"weir/abi"
)

// cheap is a native guard that decides everything and allocates nothing.
type cheap struct{ reply abi.CheckOutputReply }

func (c *cheap) CheckOutput(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, uint64, error) {
	c.reply.HoldFrom = len(q.Text)
	return &c.reply, 0, nil
}

func cheapSession(tb testing.TB, release func(string)) *Session {
	chain, err := New([]Guard{
		{Name: "a", LookBehind: 512, Output: &cheap{}}, {Name: "b", LookBehind: 512, Output: &cheap{}},
	}, Options{MaxOutputChars: 1 << 30})
	if err != nil {
		tb.Fatal(err)
	}
	return chain.Session(SessionOptions{Stamp: stamp, Release: release})
}

// One delta of four characters through two guards, without the goroutine.
func BenchmarkDelta(b *testing.B) {
	st := fastStream(b)
	text := strings.Repeat("word", 4096)
	ctx := context.Background()
	b.ReportAllocs()
	for n := 0; b.Loop(); n += 4 {
		if n >= len(text) {
			n = 0
			st = newStream(st.session, st.session.chain.output.enforcing, func(string) {}, func() {})
		}
		st.advance(ctx, text[:n+4], false, false)
	}
}

// The same through the sink, from Push to Release.
func BenchmarkSinkDelta(b *testing.B) {
	arrived := make(chan struct{})
	s := cheapSession(b, func(string) { arrived <- struct{}{} })
	b.ReportAllocs()
	for b.Loop() {
		s.Sink().Push("word")
		<-arrived
	}
	s.Sink().Finish(context.Background())
}

// A delta allocates nothing; what a guard's reply or an edit costs is its own.
func TestDeltaAllocatesNothing(t *testing.T) {
	st := fastStream(t)
	text := strings.Repeat("word", 4096)
	n := 0
	if got := testing.AllocsPerRun(1000, func() {
		n += 4
		st.advance(context.Background(), text[:n], false, false)
	}); got != 0 {
		t.Errorf("%v allocations per delta, want none", got)
	}
}

func fastStream(tb testing.TB) *stream {
	s := cheapSession(tb, func(string) {})
	return newStream(s, s.chain.output.enforcing, s.opts.Release, func() {})
}
