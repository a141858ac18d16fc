// Package ledger writes and verifies run.jsonl, the evidence of a run: one event
// a line, in AgentV's form, each with the digest of the line before it.
//
// Strings are written without what looks like a credential. AgentV also doubles
// every brace; that changes JSON inside of strings and is not done here.
package ledger

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"weir/abi/strictjson"
	"weir/host/dna"
	"weir/host/fault"
)

// Name is the file's name within the folder of a run.
const Name = "run.jsonl"

// timeForm is ISO 8601 with microseconds and the offset.
const timeForm = "2006-01-02T15:04:05.000000-07:00"

// A Field is one member of an event, after those that every event has.
type Field struct {
	Name  string
	Value any // what encoding/json can write
}

// F returns a field.
func F(name string, value any) Field { return Field{name, value} }

// A Writer appends events to one ledger. It is not safe for concurrent use. The
// first error stays: later events are dropped, and Close reports it.
type Writer struct {
	file    *os.File
	out     *bufio.Writer
	run     string
	now     func() time.Time
	seq     int
	prev    string
	waiting []event
	held    bool
	err     error
}

type event struct {
	name   string
	at     time.Time
	fields func() []Field
}

// Create makes run.jsonl in a folder, which must exist and hold none. The clock
// is time.Now in programs.
func Create(dir, run string, now func() time.Time) (*Writer, error) {
	file, err := os.OpenFile(filepath.Join(dir, Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "ledger: expected to create it: %w", err)
	}
	return &Writer{file: file, out: bufio.NewWriter(file), run: run, now: now, prev: dna.Sum(nil)}, nil
}

// Append writes an event.
func (w *Writer) Append(name string, fields ...Field) {
	w.add(event{name, w.now(), func() []Field { return fields }})
}

// Defer writes an event whose fields are known only at the next Release; until
// then all events wait in memory.
func (w *Writer) Defer(name string, fields func() []Field) {
	w.held = true
	w.add(event{name, w.now(), fields})
}

// Release writes what waits.
func (w *Writer) Release() {
	w.held = false
	for _, e := range w.waiting {
		w.write(e)
	}
	w.waiting = nil
}

func (w *Writer) add(e event) {
	if w.held {
		w.waiting = append(w.waiting, e)
		return
	}
	w.write(e)
}

func (w *Writer) write(e event) {
	if w.err != nil {
		return
	}
	line, err := w.line(e)
	if err == nil {
		_, err = w.out.Write(append(line, '\n'))
	}
	if err == nil {
		err = w.out.Flush()
	}
	if err != nil {
		w.err = fault.New(fault.Unavailable, "ledger: event %s: %w", e.name, err)
		return
	}
	w.seq++
	w.prev = dna.Sum(line)
}

func (w *Writer) line(e event) ([]byte, error) {
	at := e.at.Format(timeForm)
	all := append([]Field{{"event", e.name}, {"timestamp", at}}, e.fields()...)
	all = append(all, F("run_id", w.run), F("_seq", w.seq+1), F("_ts_iso", at), F("_prev", w.prev))
	b := []byte{'{'}
	for i, f := range all {
		value, err := marshal(f.Value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strictjson.AppendString(b, f.Name), ':')
		if b, err = Scrub(b, value); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Head is the digest of the last line so far. Whoever keeps it elsewhere can tell
// later whether this is still the ledger.
func (w *Writer) Head() string { return w.prev }

// Close releases what waits, puts the file on the disk, and returns the first
// error of all.
func (w *Writer) Close() error {
	w.Release()
	err := w.file.Sync()
	if errClose := w.file.Close(); err == nil {
		err = errClose
	}
	if w.err != nil {
		return w.err
	}
	if err != nil {
		return fault.New(fault.Unavailable, "ledger: %w", err)
	}
	return nil
}
