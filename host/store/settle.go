package store

import (
	"context"
	"fmt"

	"weir/host/fault"
)

// Attempts of [AppendSettled] before it gives up.
const settleAttempts = 8

// AppendSettled appends and, when the outcome is a conflict or not known, reads
// the tail of the log and decides by what is there:
//
//   - a message with this id: the append was made, by an earlier attempt whose
//     acknowledgement got lost; it returns that message's position;
//   - else, if pending says of the messages since expected that what is to be
//     appended is still wanted, it tries again behind them;
//   - else somebody else was first: the error is of kind Conflict.
//
// Pending is called with messages in their order, with none if only an
// acknowledgement was lost; nil stands for a function that wants a further
// attempt only in that case. The id must be a new one for every thing to append,
// and the same one in every attempt at it.
func AppendSettled(ctx context.Context, logs Logs, log string, expected int64, id string,
	records [][]byte, pending func(since []Message) bool) (int64, error) {

	var last error
	for range settleAttempts {
		position, err := logs.Append(ctx, log, expected, id, records)
		if kind := fault.Of(err); err == nil || kind != fault.Conflict && kind != fault.Unavailable {
			return position, err
		}
		last = err
		since, err := tail(ctx, logs, log, expected)
		if err != nil {
			return 0, err
		}
		for _, m := range since {
			if m.ID == id {
				return m.Position, nil
			}
		}
		missing := len(since) == 0 && fault.Of(last) == fault.Conflict // the log is shorter than expected
		if missing || !wanted(pending, since) {
			return 0, fault.New(fault.Conflict, "store: somebody else was first: %w", last)
		}
		if n := len(since); n > 0 {
			expected = since[n-1].Position
		}
	}
	return 0, fmt.Errorf("store: gave up after %d attempts: %w", settleAttempts, last)
}

func wanted(pending func([]Message) bool, since []Message) bool {
	if pending == nil {
		return len(since) == 0
	}
	return pending(since)
}

func tail(ctx context.Context, logs Logs, log string, from int64) ([]Message, error) {
	var messages []Message
	for m, err := range logs.Read(ctx, log, from) {
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}
