package ledger

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

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

// hashes recomputes those of agentv.md 3.1.
func (v *verifier) hashes(e Evidence) {
	metadata := make(record)
	_ = json.Unmarshal(v.start["metadata"], &metadata) // none is an empty one
	said := map[string]string{}
	for _, name := range []string{"topology_hash", "tool_dna_hash", "provisioning_hash", "fingerprint_v1"} {
		said[name] = metadata.text(name)
	}
	recompute := func(name string, digest func() (string, error), at bool) {
		switch {
		case said[name] == "":
			v.add(name, Failed, "expected it in run_start.metadata")
		case !at:
			v.add(name, Open, "the scenario is not at hand; --scenario names it")
		default:
			want, err := digest()
			if err != nil {
				v.add(name, Failed, err.Error())
				return
			}
			v.equal(name, want, said[name])
		}
	}
	there := e.Workflow != nil
	recompute("topology_hash", func() (string, error) { return dna.Topology(e.Workflow) }, there)
	recompute("tool_dna_hash", func() (string, error) { return dna.Tools(e.Tools) }, there)
	v.environment(said["provisioning_hash"], metadata["environmental_snapshot"], e)
	recompute("fingerprint_v1", func() (string, error) {
		return dna.Fingerprint(said["topology_hash"], said["tool_dna_hash"], said["provisioning_hash"]), nil
	}, true)
}

// environment recomputes provisioning_hash from what is at hand: the registry,
// or a snapshot in which nothing was redacted.
func (v *verifier) environment(said string, snapshot []byte, e Evidence) {
	const name = "provisioning_hash"
	switch {
	case said == "":
		v.add(name, Failed, "expected it in run_start.metadata")
		return
	case e.Registry != nil && more(snapshot, e.Registry) != "":
		v.add(name, Open, fmt.Sprintf("the environment had %s besides the scenario; --routes and the environment of the run decide", more(snapshot, e.Registry)))
		return
	case e.Registry != nil:
		want, err := dna.Provisioning(e.Registry)
		if err != nil {
			v.add(name, Failed, err.Error())
			return
		}
		v.equal(name, want, said)
		v.snapshot(snapshot, e.Registry)
		return
	case snapshot == nil:
		v.add(name, Failed, "expected environmental_snapshot beside it")
		return
	}
	want, err := dna.Provisioning(snapshot)
	switch {
	case err != nil:
		v.add(name, Failed, err.Error())
	case bytes.Contains(snapshot, []byte(dna.Redacted)):
		v.add(name, Open, "secrets are redacted in the snapshot; the scenario, --routes and the environment of the run decide")
	default:
		v.equal(name, want, said)
	}
}

// more names a member that a snapshot has and the registry at hand has not.
func more(snapshot, registry []byte) string {
	var a, b record
	if json.Unmarshal(snapshot, &a) != nil || json.Unmarshal(registry, &b) != nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if _, ok := b[name]; !ok {
			return name
		}
	}
	return ""
}

func (v *verifier) snapshot(said, registry []byte) {
	want, _, err := dna.Snapshot(registry)
	if err == nil {
		want, err = Scrub(nil, want)
	}
	if err != nil {
		v.add("environmental_snapshot", Failed, err.Error())
		return
	}
	a, errA := dna.Digest(want)
	b, errB := dna.Digest(said)
	if errA != nil || errB != nil || a != b {
		v.add("environmental_snapshot", Failed, "expected the redacted form of the registry")
		return
	}
	v.add("environmental_snapshot", OK, "")
}
