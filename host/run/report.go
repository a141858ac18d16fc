package run

import (
	"context"
	"encoding/json"
	"time"

	"weir/host/fault"
)

// Report is a run's log as people may read it.
type Report struct {
	Run        string      `json:"run"`
	Generation string      `json:"generation"`
	Variant    string      `json:"variant,omitempty"` // empty: there were none
	State      State       `json:"state"`             // of its last record
	Position   int64       `json:"position"`
	Chain      string      `json:"chain"` // digest of the last header
	Entries    []LogRecord `json:"records,omitempty"`
}

// LogRecord is one record. Its header's digest is the previous of the next one.
type LogRecord struct {
	Header
	Digest string `json:"digest"` // of the header
	// Kept says why Content is missing: "full" it is there, "dropped" it was
	// deleted at the run's end, "withheld" it may hold text that no guard has
	// seen, which nobody is shown.
	Kept    string          `json:"kept"`
	Content json.RawMessage `json:"content,omitempty"` // user ids replaced by the pseudonym
}

// What a report says of a payload.
const (
	KeptFull     = "full"
	KeptDropped  = "dropped"
	KeptWithheld = "withheld"
)

// Inspect reads a run's log and verifies it: the chain over the headers, and
// every payload that is there against its header. NotFound means that there is
// none; Internal names the record that is not what it should be.
func Inspect(ctx context.Context, log Log, run string) (*Report, error) {
	j, err := read(ctx, log, run)
	if err != nil {
		return nil, err
	}
	r := &Report{Run: run, Generation: j.generation, State: j.state(), Position: j.position, Chain: j.previous}
	pseudonym := "unknown"
	for i := range j.entries {
		rec, err := j.show(ctx, log, i, &pseudonym)
		if err != nil {
			return nil, err
		}
		r.Entries = append(r.Entries, rec)
	}
	var started startedPayload
	if json.Unmarshal(r.Entries[0].Content, &started) == nil { // not kept: not known
		r.Variant = started.Variant
	}
	return r, nil
}

// state is where the log leaves the run.
func (j *journal) state() State {
	for i := len(j.entries) - 1; i >= 0; i-- {
		switch j.entries[i].Kind {
		case RecordRunEnded:
			var e endedPayload
			if json.Unmarshal(j.entries[i].payload, &e) == nil && e.State != "" {
				return e.State
			}
			return Completed
		case RecordInteractionOpened:
			return AwaitingApproval
		case RecordRunClaimed, RecordInteractionAnswered, RecordInteractionExpired:
			return Running
		}
	}
	return Running
}

// show makes one record readable. A raw payload is verified and not shown.
func (j *journal) show(ctx context.Context, log Log, i int, pseudonym *string) (LogRecord, error) {
	e := &j.entries[i]
	out := LogRecord{Header: e.Header, Digest: digest(e.raw), Kept: KeptFull}
	var content json.RawMessage
	err := j.load(ctx, log, i, &content)
	switch {
	case fault.Of(err) == fault.Gone:
		out.Kept = KeptDropped
		return out, nil
	case err != nil:
		return out, err
	case digest(e.payload) != e.Payload:
		return out, fault.New(fault.Internal, "run %s: record %d: the payload is not what the header names", j.run, e.N)
	case !e.kept:
		out.Kept = KeptWithheld
		return out, nil
	}
	out.Content, err = anonymous(e.Kind, content, pseudonym)
	return out, err
}

// anonymous takes the user's id out of the two records that have it.
func anonymous(kind string, content json.RawMessage, pseudonym *string) (json.RawMessage, error) {
	if kind != RecordRunStarted && kind != RecordInteractionOpened {
		return content, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(content, &members); err != nil {
		return nil, err
	}
	if kind == RecordRunStarted {
		delete(members, "principal")
		_ = json.Unmarshal(members["pseudonym"], pseudonym)
	} else {
		members["owner"] = json.RawMessage(jsonString(*pseudonym))
	}
	return json.Marshal(members)
}

// At is the record's time.
func (r *LogRecord) At() time.Time { return time.UnixMilli(r.Time) }
