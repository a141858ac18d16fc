package guard

import (
	"errors"
	"sync"

	"weir/abi"
	"weir/host/fault"
	"weir/pdk/match"
)

// native looks for a guard's declared patterns in the host, so that text in which
// none of them stands costs no call of the plugin.
//
// A guard that declares patterns promises about a request without state:
//
//   - where no declared pattern has a decided match that begins before open, it
//     has nothing to say: it answers {"hold_from": open} and keeps no state;
//   - open is the earliest offset from which a match of a declared pattern may
//     still come, the length of a text that is final.
//
// So the host can give this answer itself, and calling the guard always has the
// same result. With a state the guard is always called: what it remembers is its
// own affair.
//
// No fuel is taken for it, so it has a bound of its own, without which a set
// could keep the host's processors for as long as there is text.
type native struct {
	guard    string
	set      *match.Set
	scanners sync.Pool
}

// What one look may take, in steps of about ten nanoseconds: a twentieth of a
// second, and a hundredth for each KiB. The shipped patterns take a quarter of
// the latter where texts are at their worst.
const (
	lookSteps        = 1 << 22
	lookStepsPerByte = 1 << 10
)

// codeFuel is the code of a guard whose patterns take too much, as of one whose
// hook does.
const codeFuel = "fuel"

func newNative(guard string, patterns []abi.Pattern) (*native, error) {
	list := make([]match.Pattern, len(patterns))
	for i, p := range patterns {
		list[i] = match.Pattern{ID: p.ID, Expr: p.Expr, Bound: p.Bound, Minimal: p.Minimal}
	}
	set, err := match.Compile(list, match.Options{})
	if e, ok := errors.AsType[*match.ExprError](err); ok {
		return nil, fault.New(fault.Invalid, "guard %s: pattern %.64q: %w", guard, patterns[e.Pattern].ID, e.Reason)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "guard %s: patterns: %w", guard, err)
	}
	n := &native{guard: guard, set: set}
	n.scanners.New = func() any { return set.Scanner() }
	return n, nil
}

// open looks at text from offset from on and returns where it is undecided, and
// whether the guard has nothing to say about what stands before that. The
// matches are as a request has them, appended to list; both count from from. The
// error says that the guard fails: its patterns take too long.
func (n *native) open(text string, from int, final bool, list []int) (open int, clean bool, matches []int, err error) {
	s := n.scanners.Get().(*match.Scanner)
	defer n.scanners.Put(s)
	most := lookSteps + lookStepsPerByte*(len(text)-from)
	s.Limit(most)
	s.Reset(text, from)
	found, open := s.Scan(text, final)
	if s.Spent() {
		return 0, false, list, fault.Coded(fault.Plugin, codeFuel, "plugin %s: %s: its patterns need more than %d steps for %d bytes of text",
			n.guard, abi.HookCheckOutput, most, len(text)-from)
	}
	clean = true
	for _, m := range found {
		clean = clean && m.Start >= open
		list = append(list, m.Pattern, m.Start-from, m.End-from)
	}
	return open - from, clean, list, nil
}

// clean returns whether no pattern matches in any of several whole texts.
func (n *native) clean(texts []string) (bool, error) {
	for _, text := range texts {
		if _, clean, _, err := n.open(text, 0, true, nil); !clean {
			return false, err
		}
	}
	return true, nil
}

// drive chooses how check_output is asked.
func (g *Guard) drive() (err error) {
	switch {
	case g.Output == nil:
	case g.HoldBack > 0:
		g.Output = &window{g.Output, g.HoldBack}
	case len(g.Patterns) > 0:
		g.native, err = newNative(g.Name, g.Patterns)
	}
	return err
}
