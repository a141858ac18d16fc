package run

import (
	"context"
	"encoding/json"
	"time"
)

// logTimeout bounds the writes at a run's end, which happen also when the
// client has left.
const logTimeout = 5 * time.Second

// Sizes of what is appended: a payload above inlinePayload becomes a blob, and
// records go together until a message has messageBytes (the store takes 512 KiB).
const (
	inlinePayload = 32 << 10
	messageBytes  = 256 << 10
)

// appendLog writes the run's records and ends its log. Nobody waits for them,
// so a failure is logged and changes nothing for the client.
func (r *run) appendLog() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.client), logTimeout)
	defer cancel()
	if err := r.writeLog(ctx); err != nil {
		r.opts.Logger.ErrorContext(r.client, "run log not written", "run", r.req.RunID, "error", err)
	}
}

func (r *run) writeLog(ctx context.Context) error {
	name := "run." + r.req.RunID
	var position int64
	var message [][]byte
	size := 0
	flush := func() (err error) {
		if len(message) > 0 {
			position, err = r.deps.Log.Append(ctx, name, position, r.opts.NewID(), message)
		}
		message, size = nil, 0
		return err
	}
	for i := range r.out.journal.records {
		record, err := r.keep(ctx, name, i)
		if err != nil {
			return err
		}
		if size += len(record); size > messageBytes {
			if err := flush(); err != nil {
				return err
			}
			size = len(record)
		}
		message = append(message, record)
	}
	if err := flush(); err != nil {
		return err
	}
	return r.deps.Log.End(ctx, name)
}

// keep returns one record as it stays after the run's end: a payload with
// unguarded text is dropped, a large one is stored beside the log.
func (r *run) keep(ctx context.Context, log string, i int) ([]byte, error) {
	record := r.out.journal.records[i]
	switch {
	case !r.out.journal.kept[i]:
		record.Payload = nil
	case len(record.Payload) > inlinePayload:
		if _, err := r.deps.Log.PutBlob(ctx, log, record.Payload); err != nil {
			return nil, err
		}
		record.Payload, record.Blob = nil, true
	}
	return json.Marshal(record)
}
