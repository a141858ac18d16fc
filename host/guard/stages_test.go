package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"weir/abi"
)

// counting takes part in every stage, allows, and counts how often it is asked.
type counting struct{ calls map[string]int }

func (c *counting) allow(stage string) (*abi.Verdict, uint64, error) {
	c.calls[stage]++
	return &abi.Verdict{Verdict: abi.VerdictAllow}, 1, nil
}

func (c *counting) CheckInput(context.Context, *abi.CheckInputRequest) (*abi.Verdict, uint64, error) {
	return c.allow(StageInput)
}

func (c *counting) CheckToolCall(context.Context, *abi.CheckToolCallRequest) (*abi.Verdict, uint64, error) {
	return c.allow(StageToolCall)
}

func (c *counting) CheckToolResult(context.Context, *abi.CheckToolResultRequest) (*abi.Verdict, uint64, error) {
	return c.allow(StageToolResult)
}

func (c *counting) CheckOutput(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, uint64, error) {
	if q.Use == abi.UseDisplay {
		c.calls[StageDisplay]++
		return &abi.CheckOutputReply{}, 1, nil
	}
	if q.Final {
		c.calls[StageOutput]++
	}
	return &abi.CheckOutputReply{HoldFrom: len(q.Text)}, 1, nil
}

// FAULTS S4: every way that text or a call takes × every guard, in both modes:
// each is asked, each verdict is told once, and the decision names each guard. So
// none can be skipped on one way while the log says that it ran.
func TestEveryWayAsksEveryGuard(t *testing.T) {
	args := abi.Raw(`{"query":"open"}`)
	call := ToolCheck{Tool: "search", Arguments: args}
	ways := map[string]struct {
		stage    string
		decision bool // told also when all allow
		take     func(context.Context, *Session) (abi.Raw, error)
	}{
		"question": {StageInput, true, func(ctx context.Context, s *Session) (abi.Raw, error) {
			v, err := s.CheckInput(ctx, turns)
			return v.Decision, err
		}},
		"tool call": {StageToolCall, false, func(ctx context.Context, s *Session) (abi.Raw, error) {
			v, err := s.CheckToolCall(ctx, call)
			return v.Decision, err
		}},
		"tool result": {StageToolResult, false, func(ctx context.Context, s *Session) (abi.Raw, error) {
			v, err := s.CheckToolResult(ctx, call, "text", false)
			return v.Decision, err
		}},
		"failed tool result": {StageToolResult, false, func(ctx context.Context, s *Session) (abi.Raw, error) {
			v, err := s.CheckToolResult(ctx, call, "Error: text", true)
			return v.Decision, err
		}},
		"step input shown": {StageDisplay, false, func(ctx context.Context, s *Session) (abi.Raw, error) {
			s.Display(ctx, args)
			return nil, nil
		}},
		"result shown": {StageDisplay, false, func(ctx context.Context, s *Session) (abi.Raw, error) {
			s.Display(ctx, abi.Raw(`{"tickets":[{"subject":"text"}]}`))
			return nil, nil
		}},
		"refusal message": {StageDisplay, false, func(ctx context.Context, s *Session) (abi.Raw, error) {
			s.Display(ctx, abi.Raw(`"I cannot do that."`))
			return nil, nil
		}},
		"streamed deltas": {StageOutput, true, func(ctx context.Context, s *Session) (abi.Raw, error) {
			for range 3 {
				s.Sink().Push("delta ")
				if err := s.Sink().Sync(ctx); err != nil {
					return nil, err
				}
			}
			return s.Sink().Finish(ctx).Decision, nil
		}},
		"answer or budget sentence": {StageOutput, true, func(ctx context.Context, s *Session) (abi.Raw, error) {
			s.Sink().Push("The agent could not produce a final answer within 20 tool calls.")
			return s.Sink().Finish(ctx).Decision, nil
		}},
		"deltas and then an answer": {StageOutput, true, func(ctx context.Context, s *Session) (abi.Raw, error) {
			s.Sink().Push("delta")
			s.Sink().Push("answer")
			return s.Sink().Finish(ctx).Decision, nil
		}},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var guards []Guard
				var all []*counting
				for i := range 4 {
					c := &counting{map[string]int{}}
					all = append(all, c)
					guards = append(guards, Guard{Name: fmt.Sprint("g", i), Monitor: i%2 == 1, Input: c, Output: c, ToolCall: c, ToolResult: c})
				}
				r := &safeRecorder{}
				s := must(New(guards, Options{})).Session(SessionOptions{Context: t.Context(), Stamp: stamp, Observer: r, Release: func(string) {}})
				decision, err := way.take(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				for i, c := range all {
					if diff := cmp.Diff(map[string]int{way.stage: 1}, c.calls); diff != "" {
						t.Errorf("guard %d was asked (-want +got):\n%s", i, diff)
					}
					if got := r.of(fmt.Sprint("g", i)); !slices.Equal(got, []string{way.stage + " allow"}) {
						t.Errorf("guard %d: verdicts %q", i, got)
					}
				}
				if way.decision != (decision != nil) {
					t.Fatalf("decision %s", decision)
				}
				want := []string{`"mode":"enforce","verdict":"allow"`, `"mode":"monitor","verdict":"pending"`}
				for i := range all {
					if entry := fmt.Sprintf(`{"name":"g%d","digest":"",%s`, i, want[i%2]); decision != nil && strings.Count(string(decision), entry) != 1 {
						t.Errorf("decision %s, want %s once", decision, entry)
					}
				}
			})
		})
	}
}
