package guard

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/abi"
)

// safeRecorder is a recorder for guards that judge beside the run.
type safeRecorder struct {
	mu       sync.Mutex
	verdicts []Verdict
}

func (r *safeRecorder) GuardVerdict(v Verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verdicts = append(r.verdicts, v)
}

// of lists the verdicts of one guard as "stage verdict code".
func (r *safeRecorder) of(guard string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, v := range r.verdicts {
		if v.Guard == guard {
			out = append(out, strings.TrimSpace(v.Stage+" "+v.Verdict+" "+v.ReasonCode))
		}
	}
	slices.Sort(out)
	return out
}

// blockAll blocks wherever it is asked; with gate it waits for that first.
type blockAll struct{ gate chan struct{} }

func (b blockAll) verdict(ctx context.Context) (*abi.Verdict, uint64, error) {
	if b.gate != nil {
		select {
		case <-b.gate:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
	return &abi.Verdict{Verdict: abi.VerdictBlock, ReasonCode: "no", Message: "never shown"}, 1, nil
}

func (b blockAll) CheckInput(ctx context.Context, _ *abi.CheckInputRequest) (*abi.Verdict, uint64, error) {
	return b.verdict(ctx)
}

func (b blockAll) CheckToolCall(ctx context.Context, _ *abi.CheckToolCallRequest) (*abi.Verdict, uint64, error) {
	return b.verdict(ctx)
}

func (b blockAll) CheckToolResult(ctx context.Context, _ *abi.CheckToolResultRequest) (*abi.Verdict, uint64, error) {
	return b.verdict(ctx)
}

func (b blockAll) CheckOutput(ctx context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, uint64, error) {
	if _, _, err := b.verdict(ctx); err != nil {
		return nil, 0, err
	}
	if q.Use == abi.UseDisplay {
		return &abi.CheckOutputReply{Edits: []abi.Edit{{End: len(q.Texts[0]), Replace: "never shown", Label: "X"}}}, 1, nil
	}
	r := &abi.CheckOutputReply{HoldFrom: len(q.Text)}
	if q.Text != "" {
		r.Cut = &abi.Cut{Notice: "never shown", Label: "secret:0"}
	}
	return r, 1, nil
}

func (b blockAll) guard(name string) Guard {
	return Guard{Name: name, Monitor: true, Input: b, Output: b, ToolCall: b, ToolResult: b}
}

// everyHook takes a session through all stages and returns what each decided.
func everyHook(t *testing.T, s *Session) []string {
	t.Helper()
	ctx := context.Background()
	in, err := s.CheckInput(ctx, turns)
	if err != nil {
		t.Fatal(err)
	}
	call, err := s.CheckToolCall(ctx, ToolCheck{Tool: "get", Arguments: abi.Raw(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.CheckToolResult(ctx, ToolCheck{Tool: "get", Arguments: abi.Raw(`{}`)}, "text", false)
	if err != nil {
		t.Fatal(err)
	}
	shown := s.Display(ctx, abi.Raw(`"a 123 b"`))
	s.Sink().Push("a 123 ")
	s.Sink().Push("b")
	out := s.Sink().Finish(ctx)
	if in.Blocked || call.Blocked || result.Blocked || out.Cut {
		t.Errorf("blocked: input %v, call %v, result %v, output %v", in.Blocked, call.Blocked, result.Blocked, out.Cut)
	}
	return []string{string(in.Decision), string(call.Decision), string(result.Decision), string(shown), string(out.Decision)}
}

// DECISIONS 1, monitor mode: beside the chain on every hook; nothing waits,
// nothing changes, the decision says pending, the observer hears what would
// have been.
func TestMonitorChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		watch := blockAll{gate}.guard("watch")
		enforcing := []Guard{{Name: "in", Input: saying(abi.Verdict{Verdict: abi.VerdictAllow})}, named(digitMask("D"), "out").guard()}
		r := &safeRecorder{}
		var released strings.Builder
		chain := must(New([]Guard{watch, enforcing[0], enforcing[1]}, Options{Clock: still}))
		s := chain.Session(SessionOptions{Stamp: stamp, Observer: r, Release: func(text string) { released.WriteString(text) }})
		got := everyHook(t, s) // ends although the monitor waits
		pending := `{"name":"watch","digest":"","mode":"monitor","verdict":"pending","reason_code":"","fuel":0,"ms":0}`
		if released.String() != "a <D> b" || got[3] != `"a 123 b"` {
			t.Errorf("released %q, shown %s", released.String(), got[3])
		}
		for _, i := range []int{0, 4} {
			if !strings.Contains(got[i], `"guards":[`+pending+`,`) {
				t.Errorf("decision %s", got[i])
			}
		}
		if !strings.Contains(got[0], `"stage":"input","name":"in","outcome":"passed"`) {
			t.Errorf("input decision %s, want that of the first enforcing guard", got[0])
		}
		if got[1] != "" || got[2] != "" {
			t.Errorf("tool decisions %s %s, want none", got[1], got[2])
		}
		if v := r.of("watch"); len(v) > 0 {
			t.Errorf("verdicts before the monitor has judged: %q", v)
		}
		close(gate)
		synctest.Wait()
		want := []string{"display would_modify", "input would_block no", "output would_block", "tool_call would_block no", "tool_result would_block no"}
		if diff := cmp.Diff(want, r.of("watch")); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s", diff)
		}
		for _, v := range r.verdicts {
			if v.Monitor != (v.Guard == "watch") {
				t.Errorf("%s: monitor %v", v.Guard, v.Monitor)
			}
		}
	})
}

// A monitor cannot hold text back, and one that fails fails nobody.
func TestMonitorIsNotPartOfHoldFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := Guard{Name: "hold", Monitor: true, Output: outputFunc(func(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
			return nil, errors.New("no")
		})}
		r := &safeRecorder{}
		var released []string
		s := must(New([]Guard{hold}, Options{})).Session(SessionOptions{Stamp: stamp, Observer: r,
			Release: func(text string) { released = append(released, text) }})
		for _, p := range []string{"one ", "two"} {
			s.Sink().Push(p)
			if err := s.Sink().Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		v := s.Sink().Finish(t.Context())
		synctest.Wait()
		if diff := cmp.Diff([]string{"one ", "two"}, released); diff != "" || v.Cut {
			t.Errorf("released (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"output error failed"}, r.of("hold")); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s", diff)
		}
	})
}

// What a monitor would have masked, in the words of an observer.
func TestMonitorWouldModify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := named(digitMask("D"), "watch").guard()
		g.Monitor = true
		r := &safeRecorder{}
		s := must(New([]Guard{g}, Options{})).Session(SessionOptions{Stamp: stamp, Observer: r, Release: func(string) {}})
		s.Sink().Push(strings.Repeat("clean ", 10_000) + "123")
		s.Sink().Finish(t.Context())
		synctest.Wait()
		if diff := cmp.Diff([]string{"output would_modify"}, r.of("watch")); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s", diff)
		}
	})
}

// Under load a judgement is dropped and said to be; nobody waits and the queue
// does not grow.
func TestMonitorIsDroppedUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		g := Guard{Name: "watch", Monitor: true, Input: blockAll{gate}}
		r := &safeRecorder{}
		chain := must(New([]Guard{g}, Options{MonitorCalls: 2, MonitorQueue: 3}))
		var held atomic.Int32
		for range 10 {
			s := chain.Session(SessionOptions{Stamp: stamp, Observer: r, Hold: func() func() { held.Add(1); return func() { held.Add(-1) } }})
			if _, err := s.CheckInput(t.Context(), turns); err != nil {
				t.Fatal(err)
			}
		}
		if got := r.of("watch"); len(got) != 5 || got[0] != "input dropped no_room" {
			t.Errorf("verdicts %q, want five dropped", got)
		}
		if held.Load() != 5 {
			t.Errorf("%d judgements keep the plugins, want 5", held.Load())
		}
		close(gate)
		synctest.Wait()
		if got := r.of("watch"); len(got) != 10 || held.Load() != 0 {
			t.Errorf("%d verdicts, %d still hold", len(got), held.Load())
		}
	})
}

// A monitor's model calls have a budget of their own and do not count.
func TestMonitorAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watch := Guard{Name: "watch", Monitor: true, Input: askGuard(ownBare)}
		own := Guard{Name: "own", Input: saying(abi.Verdict{Verdict: abi.VerdictAllow})}
		r := &safeRecorder{}
		chain := must(New([]Guard{watch, own}, Options{}))
		gate := make(chan struct{})
		ask := func(context.Context, string, *abi.ModelRequest) abi.AskReply { <-gate; return abi.AskReply{Text: "no"} }
		for range 2 {
			v, err := chain.Session(SessionOptions{Stamp: stamp, Observer: r, Ask: ask}).CheckInput(t.Context(), turns)
			if err != nil || !strings.Contains(string(v.Decision), `"llm_call_count":0`) {
				t.Errorf("decision %s, %v", v.Decision, err)
			}
		}
		synctest.Wait()
		close(gate)
		synctest.Wait()
		if diff := cmp.Diff([]string{"input allow", "input dropped no_room"}, r.of("watch")); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s", diff)
		}
	})
}

// The work after a run's end is bounded by its time-out, and a chain that is
// closed leaves none.
func TestMonitorEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		want string
		end  func(*testing.T, *Chain)
	}{
		{"time", "input dropped timeout", func(_ *testing.T, c *Chain) { time.Sleep(c.opts.MonitorTimeout) }},
		{"close", "input dropped shutdown", func(t *testing.T, c *Chain) {
			for range 2 {
				if err := c.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &safeRecorder{}
				chain := must(New([]Guard{{Name: "watch", Monitor: true, Input: blockAll{make(chan struct{})}}}, Options{MonitorCalls: 1}))
				ctx, cancel := context.WithCancel(t.Context())
				for range 2 { // one works, one waits
					if _, err := chain.Session(SessionOptions{Context: ctx, Stamp: stamp, Observer: r}).CheckInput(ctx, turns); err != nil {
						t.Fatal(err)
					}
				}
				cancel() // the runs are over, the judgements are not
				synctest.Wait()
				if got := r.of("watch"); len(got) > 0 {
					t.Errorf("verdicts %q at the run's end", got)
				}
				c.end(t, chain)
				if c.name == "time" {
					c.end(t, chain) // the second one's time
				}
				synctest.Wait()
				if diff := cmp.Diff([]string{c.want, c.want}, r.of("watch")); diff != "" {
					t.Errorf("verdicts (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A closed chain, and plugins that are gone, drop at once.
func TestMonitorAfterShutdown(t *testing.T) {
	r := &safeRecorder{}
	chain := must(New([]Guard{blockAll{}.guard("watch")}, Options{}))
	gone := chain.Session(SessionOptions{Stamp: stamp, Observer: r, Release: func(string) {}, Hold: func() func() { return nil }})
	everyHook(t, gone)
	if err := chain.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	everyHook(t, chain.Session(SessionOptions{Stamp: stamp, Observer: r, Release: func(string) {}}))
	got := r.of("watch")
	if len(got) != 10 || slices.ContainsFunc(got, func(s string) bool { return !strings.Contains(s, "dropped") }) {
		t.Errorf("verdicts %q", got)
	}
}

// Close gives up waiting with its context.
func TestCloseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stubborn := make(chan struct{})
		g := Guard{Name: "watch", Monitor: true, Input: inputFunc(func(*abi.CheckInputRequest) (*abi.Verdict, error) {
			<-stubborn
			return nil, errors.New("late")
		})}
		chain := must(New([]Guard{g}, Options{}))
		if _, err := chain.Session(SessionOptions{Stamp: stamp}).CheckInput(t.Context(), turns); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := chain.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close = %v", err)
		}
		close(stubborn)
		synctest.Wait()
		if err := chain.Close(t.Context()); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
}
