package guard

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir/abi"
)

func passing(q *abi.CheckOutputRequest) *abi.CheckOutputReply {
	return &abi.CheckOutputReply{HoldFrom: len(q.Text)}
}

func passAll() Guard {
	return Guard{Name: "pass", Output: outputFunc(func(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		return passing(q), nil
	})}
}

// FAULTS S11: a client that does not read blocks the release and nothing else,
// and what waits for it is bounded by the answer's maximal length.
func TestSlowClientNeverBlocksPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		chain := must(New([]Guard{passAll()}, Options{MaxOutputChars: 1000}))
		s := chain.Session(SessionOptions{Context: ctx, Stamp: stamp, Release: func(string) { <-ctx.Done() }})
		for range 10_000 {
			s.Sink().Push("some text ")
		}
		synctest.Wait()
		if n := s.Sink().in.text.Len(); n > 1000 {
			t.Errorf("%d bytes are kept, want at most the limit", n)
		}
		cancel()
		synctest.Wait()
		v := s.Sink().Finish(t.Context())
		if v.RawChars == 0 {
			t.Error("no characters were counted")
		}
	})
}

// Deltas that arrive while a guard is at work go together in the next call.
func TestDeltasJoinWhileAGuardWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var texts []string
		g := Guard{Name: "g", Output: outputFunc(func(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
			texts = append(texts, q.Text)
			<-gate
			return passing(q), nil
		})}
		s := must(New([]Guard{g}, Options{})).Session(SessionOptions{Stamp: stamp, Release: func(string) {}})
		s.Sink().Push("one")
		synctest.Wait()
		s.Sink().Push("two")
		s.Sink().Push("three")
		close(gate)
		synctest.Wait()
		s.Sink().Finish(t.Context())
		if got := strings.Join(texts, "|"); got != "one|twothree|" {
			t.Errorf("calls with %q", got)
		}
	})
}

// Nothing is released after the run's context has ended, a call in flight ends
// with it, and that is no failure of the guard.
func TestContextEndsTheSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("client gone")
		g := Guard{Name: "g", Output: outputFunc(func(ctx context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})}
		released := 0
		s := must(New([]Guard{g}, Options{})).Session(SessionOptions{
			Context: ctx, Stamp: stamp, Release: func(string) { released++ }})
		s.Sink().Push("text")
		var wait error
		var wg sync.WaitGroup
		wg.Go(func() { wait = s.Sink().Sync(context.Background()) })
		synctest.Wait()
		cancel(gone)
		wg.Wait()
		if !errors.Is(wait, gone) {
			t.Errorf("Sync = %v, want the cause", wait)
		}
		v := s.Sink().Finish(context.Background())
		if released != 0 || v.Cut || strings.Contains(string(v.Decision), "error") {
			t.Errorf("released %d, cut %v, decision %s", released, v.Cut, v.Decision)
		}
	})
}

// The context given to Finish ends it too.
func TestFinishEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		released := ""
		s := must(New([]Guard{passAll()}, Options{})).Session(SessionOptions{
			Stamp: stamp, Release: func(text string) {
				released += text
				<-ctx.Done()
				time.Sleep(time.Second) // so that Finish has seen it too
			}})
		s.Sink().Push("text")
		synctest.Wait()
		s.Sink().Push("more")
		go cancel()
		s.Sink().Finish(ctx)
		if released != "text" {
			t.Errorf("released %q, want nothing after the context ended", released)
		}
	})
}

// The context may end between the two parts of a split fragment.
func TestNothingIsReleasedAfterTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	released := ""
	s := must(New([]Guard{passAll()}, Options{})).Session(SessionOptions{
		Context: ctx, Stamp: stamp, Release: func(text string) {
			released += text
			cancel()
		}})
	s.Sink().Push(`{"a":1}`)
	s.Sink().Finish(t.Context())
	if released != "{" {
		t.Errorf("released %q", released)
	}
}

// After a cut the channel is closed, later text is dropped and counted, and
// Sync does not wait for it.
func TestCutEndsTheStream(t *testing.T) {
	var released []string
	chain := chainOf(t, []*fake{named(secretCut(0, "withheld", "sekrit"), "g")}, 1000)
	s := chain.Session(SessionOptions{Stamp: stamp, Release: func(text string) { released = append(released, text) }})
	k := s.Sink()
	select {
	case <-k.Cut():
		t.Fatal("cut before any text")
	default:
	}
	k.Push("my sekrit is")
	<-k.Cut()
	k.Push(" more")
	if err := k.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := k.Finish(t.Context())
	k.Push("late")
	if got := strings.Join(released, "|"); got != "my |withheld" {
		t.Errorf("released %q", got)
	}
	if !v.Cut || v.RawChars != len("my sekrit is more") {
		t.Errorf("verdict %+v", v)
	}
}

// A session that never gets text starts nothing and calls nobody.
func TestFinishWithoutText(t *testing.T) {
	called := false
	g := Guard{Name: "g", Output: outputFunc(func(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		called = true
		return passing(q), nil
	})}
	s := must(New([]Guard{g}, Options{})).Session(SessionOptions{Stamp: stamp, Release: func(string) { t.Error("released") }})
	s.Sink().Push("")
	if err := s.Sink().Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := s.Sink().Finish(t.Context())
	s.Sink().Push("late")
	if called || v.Cut || v.RawChars != 0 {
		t.Errorf("called %v, verdict %+v", called, v)
	}
}

// A long text that arrives at once is shown in pieces of at most callBytes,
// which never split a character.
func TestLongTextIsShownInPieces(t *testing.T) {
	text := strings.Repeat("é€😀a", 10_000)
	largest := 0
	g := Guard{Name: "g", Output: outputFunc(func(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		largest = max(largest, len(q.Text))
		return passing(q), nil
	})}
	drive(t, must(New([]Guard{g}, Options{})), []string{text}, text)
	if largest > callBytes || largest < callBytes/2 {
		t.Errorf("largest text %d bytes, want about %d", largest, callBytes)
	}
}

// Pushes, a Sync and observers of the cut may come from several goroutines.
func TestConcurrentUse(t *testing.T) {
	n := 0
	s := chainOf(t, []*fake{named(digitMask("D"), "d"), named(everyThird("S"), "s")}, 100000).Session(
		SessionOptions{Stamp: stamp, Release: func(text string) { n += len(text) }})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				s.Sink().Push("word ")
				if err := s.Sink().Sync(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s.Sink().Finish(t.Context())
	if n != 4*200*len("word ") {
		t.Errorf("%d bytes released", n)
	}
}
