package scripted

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// named are the tools that the question names and that are offered, besides the
// desk's own: whoever asks says what to use.
func (t *turn) named() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(t.tools)) {
		own := name == "search_tickets" || name == "get_ticket" || name == changeTool
		if !own && t.asks(`\b`+regexp.QuoteMeta(name)+`\b`) {
			names = append(names, name)
		}
	}
	return names
}

// use calls what was named and reports what it returned.
func (t *turn) use(names, results []string) reply {
	if len(results) > 0 {
		return reply{text: strings.Join(names, " and ") + " is done: " + strings.Join(results, "; ")}
	}
	r := reply{text: "Let me see. "}
	for _, name := range names {
		r.calls = append(r.calls, call{name, "{}"})
	}
	return r
}
