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
}

// verdict builds the output decision; nobody looks at the stream any more.
func (st *stream) verdict(rawChars int) OutputVerdict {
	for _, w := range st.guards {
		st.session.observe(StageOutput, w.verdict(st.cut))
	}
	return OutputVerdict{Cut: st.cut != nil, RawChars: rawChars, Decision: st.event()}
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
