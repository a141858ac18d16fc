package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"weir/host/fault"
)

// logTimeout bounds the writes of a run, which happen also when the client has
// left.
const logTimeout = 10 * time.Second

// Sizes of what is appended: a payload above inlinePayload becomes a blob, and
// records go together until a message has messageBytes (the store takes 512 KiB).
const (
	inlinePayload = 32 << 10
	messageBytes  = 256 << 10
)

// LogName is the name of a run's log, and of the space of its larger payloads.
func LogName(run string) string { return "run." + run }

// rawSpace is where the payloads are that the run's end drops.
func rawSpace(run string) string { return "raw." + run }

// flush appends what the store does not have yet. With ended, payloads that
// would be dropped at once are not written.
func (j *journal) flush(ctx context.Context, log Log, newID func() string, ended bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), logTimeout)
	defer cancel()
	j.known = j.known || !ended
	for j.durable < len(j.entries) {
		upTo, message, err := j.message(ctx, log, ended)
		if err != nil {
			return err
		}
		last := j.entries[upTo-1].Kind
		j.reached("before " + last)
		if j.tried == 0 { // else the store may have just this, and finds it by the id
			j.tried, j.id = upTo, newID()
		}
		position, err := int64(1), error(nil)
		if !j.known && upTo == len(j.entries) { // the whole log of a run that never waited
			err = log.Complete(ctx, LogName(j.run), j.id, message)
		} else {
			j.known = true
			position, err = log.Append(ctx, LogName(j.run), j.position, j.id, message)
		}
		switch {
		case taken(err):
			return errors.Join(err, j.dropLate(ctx, log))
		case errors.Is(err, context.DeadlineExceeded):
			return fault.New(fault.Unavailable, "run %s: its log: %w", j.run, err)
		case err != nil:
			return err
		}
		j.position, j.durable, j.tried = position, upTo, 0
		j.reached(last)
	}
	return nil
}

// dropLate drops what was written beside a log that somebody else has ended in
// the meantime.
func (j *journal) dropLate(ctx context.Context, log Log) error {
	if !ended(ctx, log, j.run) {
		return nil // who ends it drops them
	}
	return log.DropSpace(ctx, rawSpace(j.run))
}

// claimant is the replica that has gone on with the run since its last question
// was answered, or nobody.
func (j *journal) claimant(ctx context.Context, log Log) (string, error) {
	for i := len(j.entries) - 1; i >= 0; i-- {
		switch j.entries[i].Kind {
		case RecordRunClaimed:
			var c claimedPayload
			err := j.load(ctx, log, i, &c)
			return c.Replica, err
		case RecordInteractionOpened, RecordInteractionAnswered, RecordInteractionExpired, RecordInteractionCancelled:
			return "", nil
		}
	}
	return "", nil
}

// maxPack is how many bytes of raw payloads go into one blob, unless one alone
// is larger.
const maxPack = 8 << 20

// message is as many of the next records as go together, with their payloads
// written first.
func (j *journal) message(ctx context.Context, log Log, ended bool) (upTo int, message [][]byte, err error) {
	var records []Record
	var pack []byte
	size := 0
	for upTo = j.durable; upTo < cmp.Or(j.tried, len(j.entries)); upTo++ {
		e := &j.entries[upTo]
		record, err := j.record(ctx, log, e, ended, len(pack))
		if err != nil {
			return 0, nil, err
		}
		size += len(record.Header) + len(record.Payload) + recordOverhead
		full := size > messageBytes || record.Raw != nil && len(pack)+len(e.payload) > maxPack
		if full && len(records) > 0 {
			break
		}
		if record.Raw != nil {
			pack = append(pack, e.payload...)
		}
		records = append(records, record)
	}
	if len(pack) > 0 {
		if _, err := log.PutBlob(ctx, rawSpace(j.run), pack); err != nil {
			return 0, nil, err
		}
	}
	name := digest(pack)
	for i := range records {
		if records[i].Raw != nil {
			records[i].Raw.Blob = name
		}
		raw, err := json.Marshal(records[i])
		if err != nil {
			return 0, nil, err
		}
		message = append(message, raw)
	}
	return upTo, message, nil
}

// recordOverhead is what a record has beside header and payload, at most.
const recordOverhead = 256

// record is one record as the store keeps it. A raw payload goes to the place
// from in the message's blob.
func (j *journal) record(ctx context.Context, log Log, e *entry, ended bool, from int) (Record, error) {
	record := Record{Header: e.raw}
	switch {
	case !e.kept && !ended:
		record.Raw = &part{From: from, To: from + len(e.payload)}
	case !e.kept:
	case len(e.payload) > inlinePayload:
		record.Blob = true
		if _, err := log.PutBlob(ctx, LogName(j.run), e.payload); err != nil {
			return record, err
		}
	default:
		record.Payload = e.payload
	}
	return record, nil
}

// close writes the rest, drops what only a resume needed and ends the log.
func (j *journal) close(ctx context.Context, log Log, newID func() string) error {
	if err := j.flush(ctx, log, newID, true); err != nil {
		return err
	}
	if !j.known { // it was completed
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), logTimeout)
	defer cancel()
	if err := log.DropSpace(ctx, rawSpace(j.run)); err != nil {
		return err
	}
	return log.End(ctx, LogName(j.run))
}

// hasEnded tells whether the run's end is the last record.
func (j *journal) hasEnded() bool {
	n := len(j.entries)
	return n > 0 && j.entries[n-1].Kind == RecordRunEnded
}

// ended tells whether a log says by now that its run has ended.
func ended(ctx context.Context, log Log, run string) bool {
	j, err := read(ctx, log, run)
	return err == nil && j.hasEnded()
}

// read returns a run's journal as the store has it, with the chain verified.
// Payloads that are beside their headers are there; load gets the others. A
// log that nobody wrote is NotFound.
func read(ctx context.Context, log Log, run string) (*journal, error) {
	j := &journal{run: run, now: time.Now, reached: func(string) {}, known: true}
	for message, err := range log.Read(ctx, LogName(run), 0) {
		if err != nil {
			return nil, err
		}
		for _, raw := range message.Records {
			if err := j.take(raw); err != nil {
				return nil, fault.New(fault.Internal, "run %s: record %d: %w", run, len(j.entries)+1, err)
			}
		}
		j.position = message.Position
	}
	if len(j.entries) == 0 {
		return nil, fault.New(fault.NotFound, "run %s: there is no log", run)
	}
	j.durable = len(j.entries)
	return j, nil
}

func (j *journal) take(raw []byte) error {
	var r Record
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	e := entry{raw: r.Header, payload: r.Payload, kept: r.Payload != nil || r.Blob, part: r.Raw}
	if err := json.Unmarshal(r.Header, &e.Header); err != nil {
		return err
	}
	switch {
	case e.Version != RecordVersion:
		return fault.New(fault.Internal, "layout version %d, expected %d", e.Version, RecordVersion)
	case e.Run != j.run || e.N != len(j.entries)+1 || e.Previous != j.previous:
		return fault.New(fault.Internal, "the chain is broken")
	case e.payload != nil && digest(e.payload) != e.Payload:
		return fault.New(fault.Internal, "the payload is not what the header names")
	}
	j.previous = digest(r.Header)
	j.generation, j.epoch = e.Generation, e.Epoch
	j.entries = append(j.entries, e)
	return nil
}

// load decodes a record's payload, which is got first when it is a blob. A
// payload that was dropped is Gone.
func (j *journal) load(ctx context.Context, log Log, i int, into any) error {
	e := &j.entries[i]
	blob := log.Blob
	if e.part != nil && e.payload == nil { // its neighbours stand in the same one
		blob = func(ctx context.Context, space, digest string) ([]byte, error) {
			if j.packName != digest {
				pack, err := log.Blob(ctx, space, digest)
				if err != nil {
					return nil, err
				}
				j.packName, j.pack = digest, pack
			}
			return j.pack, nil
		}
	}
	body, err := e.body(ctx, blob)
	if err != nil {
		return err
	}
	e.payload = body
	return e.decode(into)
}

// body returns a record's payload from where it is.
func (e *entry) body(ctx context.Context, blob func(ctx context.Context, space, digest string) ([]byte, error)) ([]byte, error) {
	if e.payload != nil {
		return e.payload, nil
	}
	if !e.kept && e.part == nil {
		return nil, e.dropped()
	}
	space, name := LogName(e.Run), e.Payload
	if e.part != nil {
		space, name = rawSpace(e.Run), e.part.Blob
	}
	body, err := blob(ctx, space, name)
	switch {
	case fault.Of(err) == fault.NotFound:
		return nil, e.dropped()
	case err != nil:
		return nil, err
	case e.part == nil:
		return body, nil
	case e.part.From < 0 || e.part.From > e.part.To || e.part.To > len(body):
		return nil, fault.New(fault.Internal, "run %s: record %d: its payload lies outside of its blob", e.Run, e.N)
	}
	body = body[e.part.From:e.part.To:e.part.To]
	if digest(body) != e.Payload {
		return nil, fault.New(fault.Internal, "run %s: record %d: the payload is not what the header names", e.Run, e.N)
	}
	return body, nil
}

func (e *entry) dropped() error {
	return fault.New(fault.Gone, "run %s: record %d: the payload is dropped", e.Run, e.N)
}

func (e *entry) decode(into any) error {
	if err := json.Unmarshal(e.payload, into); err != nil {
		return fault.New(fault.Internal, "run %s: record %d (%s): %w", e.Run, e.N, e.Kind, err)
	}
	return nil
}
