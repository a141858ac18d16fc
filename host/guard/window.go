package guard

import (
	"context"
	"slices"

	"weir/abi"
)

// window drives a plugin that declares hold_back and knows nothing of hold_from:
// it finds what it can in the text that it is shown, as if there were no more,
// and the window decides how much of that counts.
//
//	… decided │ text of this call                 │
//	          │ edit ✓ │ edit? │ ← hold_back bytes │
//	                   ▲ hold_from
//
// The last hold_back bytes stay undecided, back to the start of a character and
// to the start of an edit that would be split. So whatever the plugin finds from
// its own text and look_behind bytes before it, and what needs at most hold_back
// bytes from its start to the last byte that decides it, is found for every
// chunking as in the whole text. Longer finds depend on the chunks.
//
// Its state is not kept: a text is shown to it several times.
type window struct {
	plugin OutputChecker
	bytes  int
}

// CheckOutput implements OutputChecker. What the plugin says of hold_from does
// not count.
func (w *window) CheckOutput(ctx context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, uint64, error) {
	reply, fuel, err := w.plugin.CheckOutput(ctx, q)
	if err != nil || reply == nil || q.Use == abi.UseDisplay {
		return reply, fuel, err
	}
	reply.HoldFrom, reply.State = len(q.Text), nil
	if q.Final || reply.Validate(q) != nil {
		return reply, fuel, nil // the caller refuses what is not valid
	}
	reply.HoldFrom = w.hold(q.Text, reply.Edits)
	reply.Edits = slices.DeleteFunc(reply.Edits, func(e abi.Edit) bool { return e.End > reply.HoldFrom })
	if reply.Cut != nil && reply.Cut.At >= reply.HoldFrom {
		reply.Cut = nil // further text may change it
	}
	return reply, fuel, nil
}

// hold returns how much of text is decided. An edit may reach into another, so
// stepping back from one can split the next.
func (w *window) hold(text string, edits []abi.Edit) int {
	hold := runeStart(text, max(0, len(text)-w.bytes))
	for {
		split := slices.IndexFunc(edits, func(e abi.Edit) bool { return e.Start < hold && e.End > hold })
		if split < 0 {
			return hold
		}
		hold = edits[split].Start
	}
}
