package guard

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"weir/abi"
)

// OutputVerdict is what the output stage decided about the whole answer.
type OutputVerdict struct {
	Cut      bool
	RawChars int     // characters that were pushed
	Decision abi.Raw // the decision event's output (2.7)
	Edits    []MadeEdit
	Stop     *MadeCut // nil: the answer was not cut
}

// MadeEdit is an edit that was applied, at its place in the whole text that was
// pushed, without the text that it replaced.
type MadeEdit struct {
	Start, End int // in bytes
	Replace    string
	Label      string
	Guard      string
}

// MadeCut is where an answer ended. Guard is empty where it was too long.
type MadeCut struct {
	At     int // in bytes of the whole text that was pushed
	Notice string
	Label  string
	Guard  string
}

// verdict builds the output decision; nobody looks at the stream any more.
func (st *stream) verdict(rawChars int) OutputVerdict {
	for _, w := range st.guards {
		st.session.observe(StageOutput, w.verdict(st.cut))
	}
	return OutputVerdict{Cut: st.cut != nil, RawChars: rawChars, Decision: st.event(), Edits: st.made, Stop: st.stop()}
}

// stop is the cut as others may see it.
func (st *stream) stop() *MadeCut {
	if st.cut == nil {
		return nil
	}
	c := &MadeCut{At: st.cut.at, Notice: st.cut.notice, Label: st.cut.label}
	if st.cut.guard >= 0 {
		c.Guard = st.guards[st.cut.guard].guard.Name
	}
	return c
}

// event is the decision in the order of 2.7.
func (st *stream) event() abi.Raw {
	blocked, modified := st.cut != nil, len(st.labels) > 0
	m := members{
		{"stage", text(StageOutput)},
		{"name", text(st.session.chain.opts.OutputName)},
		{"outcome", text(outcome(blocked, modified))},
		{"blocked", boolean(blocked)},
		{"modified", boolean(modified)},
		{"oversized", boolean(st.oversized)},
		{"masked_entities", st.masked()},
		{"sanitized_output_length", number(st.released)},
	}
	if n, ok := st.pattern(); ok {
		m = append(m, member{"pattern_index", number(n)})
	}
	m = append(m, member{"guards", st.tallies()})
	return m.appendJSON(nil)
}

func (st *stream) masked() abi.Raw {
	var m members
	for _, label := range slices.Sorted(maps.Keys(st.labels)) {
		m = append(m, member{label, number(st.labels[label])})
	}
	return m.appendJSON(nil)
}

// pattern is the number in the cut's label secret:<n>.
func (st *stream) pattern() (int, bool) {
	if st.cut == nil {
		return 0, false
	}
	digits, ok := strings.CutPrefix(st.cut.label, "secret:")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n >= 0
}

func (st *stream) tallies() abi.Raw {
	return entries(st.session.chain.output.all, func(i int) *tally { return &st.guards[i].tally })
}
