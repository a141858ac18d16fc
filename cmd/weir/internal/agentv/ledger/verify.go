package ledger

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"weir/abi/strictjson"
	"weir/cmd/weir/internal/agentv/schema"
	"weir/host/dna"
	"weir/host/fault"
)

// What came of a check.
const (
	OK     = "ok"
	Failed = "failed"
	Absent = "absent" // there is nothing to check, and there need not be
	Open   = "open"   // what is at hand does not suffice to tell
)

// A Check is one thing that was verified.
type Check struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail,omitempty"`
}

// A Verification is what is known of a ledger.
type Verification struct {
	RunID  string  `json:"run_id"`
	Lines  int     `json:"lines"`
	Head   string  `json:"head"`
	Checks []Check `json:"checks"`
	Holds  bool    `json:"holds"` // no check has failed
}

// Evidence is what a ledger is held against. All of it is optional.
type Evidence struct {
	Workflow, Tools []byte // of the scenario; without a workflow there was none
	Registry        []byte
	Head            string // the digest of the last line, kept elsewhere
}

// maxLine bounds a line, in bytes.
const maxLine = 64 << 20

// verifier reads a ledger once and remembers the first mistake of each kind.
type verifier struct {
	runs, events *schema.Schema

	result     Verification
	prev       string
	chained    int
	published  int
	ours       int
	mistakes   map[string]string
	start, end record
	last       string
	starts     int
	ends       int
	tally      tally
}

// record are the members of a line as they stand.
type record map[string]json.RawMessage

// A Verifier reads ledgers; it has the schemas at hand. It is safe for concurrent
// use.
type Verifier struct {
	runs, events *schema.Schema
}

// NewVerifier compiles the schemas.
func NewVerifier() (*Verifier, error) {
	runs, err := schema.Runs()
	if err != nil {
		return nil, err
	}
	events, err := schema.Events()
	return &Verifier{runs, events}, err
}

// Verify reads a ledger and recomputes what it says about itself. An error means
// that it could not be read; a ledger that does not hold is none.
func (s *Verifier) Verify(r io.Reader, evidence Evidence) (*Verification, error) {
	v := &verifier{runs: s.runs, events: s.events, prev: dna.Sum(nil), mistakes: make(map[string]string), tally: newTally()}
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fault.New(fault.Invalid, "ledger: line %d: %w", v.result.Lines+1, err)
		}
		v.line(line)
	}
	v.conclude(evidence)
	return &v.result, nil
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, fault.New(fault.Limit, "expected at most %d bytes", maxLine)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)):
			return nil, err
		}
		return bytes.TrimSuffix(line, []byte("\n")), nil
	}
}

// wrong remembers the first mistake of a kind.
func (v *verifier) wrong(kind, format string, args ...any) {
	if _, ok := v.mistakes[kind]; !ok {
		v.mistakes[kind] = fmt.Sprintf("line %d: ", v.result.Lines) + fmt.Sprintf(format, args...)
	}
}

func (v *verifier) line(line []byte) {
	v.result.Lines++
	defer func() { v.prev = dna.Sum(line) }()
	fields := make(record)
	d := strictjson.NewDecoder(line)
	err := d.Object(func(name string) (err error) {
		fields[name], err = d.Raw()
		return err
	})
	if err == nil {
		err = d.End()
	}
	if err != nil {
		v.wrong("form", "expected one JSON object: %v", err)
		return
	}
	v.schema(line)
	v.identity(fields)
	v.last = fields.text("event")
	switch v.last {
	case "run_start":
		v.starts++
		if v.result.Lines == 1 {
			v.start = fields
		}
	case "run_end":
		v.ends++
		v.end = fields
	}
	v.tally.add(fields)
}

// schema wants every line to be of the published schema, or of ours for the
// events that it does not know.
func (v *verifier) schema(line []byte) {
	err := v.runs.Check(line)
	if err == nil {
		v.published++
		return
	}
	if v.events.Check(line) == nil {
		v.ours++
		return
	}
	v.wrong("schema", "%v", err)
}

func (v *verifier) identity(f record) {
	if n := string(f["_seq"]); n != fmt.Sprint(v.result.Lines) {
		v.wrong("sequence", "expected _seq %d, got %.20s", v.result.Lines, n)
	}
	run := f.text("run_id")
	if v.result.RunID == "" {
		v.result.RunID = run
	}
	if run != v.result.RunID {
		v.wrong("sequence", "expected run_id %q, got %.80q", v.result.RunID, run)
	}
	if _, ok := f["_prev"]; !ok {
		if v.chained > 0 {
			v.wrong("chain", "expected _prev")
		}
		return
	}
	if v.chained++; v.chained != v.result.Lines {
		v.wrong("chain", "expected _prev from the first line on")
	}
	if got := f.text("_prev"); got != v.prev {
		v.wrong("chain", "expected _prev %s, got %.80q", v.prev, got)
	}
}

func (f record) text(name string) string {
	var s string
	_ = json.Unmarshal(f[name], &s) // another kind of value is no text
	return s
}

func (v *verifier) conclude(e Evidence) {
	v.result.Head = v.prev
	v.check("form", fmt.Sprintf("%d lines", v.result.Lines))
	v.check("schema", fmt.Sprintf("%d lines of the published schema, %d of events that only AgentV's tools know", v.published, v.ours))
	v.check("sequence", "")
	if v.chained == 0 {
		v.add("chain", Absent, "this ledger has none")
	} else {
		v.check("chain", "head "+v.prev)
	}
	if e.Head != "" {
		v.equal("head", e.Head, v.prev)
	}
	if v.starts != 1 || v.start == nil || v.ends != 1 || v.last != "run_end" {
		v.add("frame", Failed, "expected one run_start at the beginning and one run_end at the end")
	} else {
		v.add("frame", OK, "")
	}
	v.hashes(e)
	v.outcome()
	v.result.Holds = true
	for _, c := range v.result.Checks {
		v.result.Holds = v.result.Holds && c.State != Failed
	}
}

func (v *verifier) add(name, state, detail string) {
	v.result.Checks = append(v.result.Checks, Check{name, state, detail})
}

func (v *verifier) check(name, detail string) {
	if mistake, ok := v.mistakes[name]; ok {
		v.add(name, Failed, mistake)
		return
	}
	v.add(name, OK, detail)
}

func (v *verifier) equal(name, want, got string) {
	if want != got {
		v.add(name, Failed, fmt.Sprintf("expected %.80s, got %.80s", want, got))
		return
	}
	v.add(name, OK, got)
}
