// Package match finds regular expressions in text that may still grow.
//
// Expressions have Go's syntax and Go's leftmost-first meaning, with three
// differences that a guardrail needs:
//
//   - \b, \w, \d and \s are those of Unicode. Go's own are those of ASCII, so
//     a no-break space would hide what a plain space does not.
//   - A search says from where on the text is undecided as long as more of it
//     may follow, so whoever streams text knows what must be held back.
//   - An expression that can match nothing at all is refused.
//
// Time is linear in the text for every expression. The cost of a character is
// bounded by the size of the compiled expression, whatever the text is.
package match

import (
	"errors"
	"regexp/syntax"
	"strconv"
)

// maxInsts bounds a compiled expression, and with it the time that one
// character can take.
const maxInsts = 8192

// A Pattern is one compiled expression. It is read-only and may be used
// concurrently.
type Pattern struct {
	insts []inst
	start uint32
	first set  // characters with which a match can begin
	wide  bool // a match can begin with a character beyond ASCII
	looks syntax.EmptyOp
}

// Compile reads an expression in Go's syntax. Its error is a sentence for
// whoever wrote the expression.
func Compile(expr string) (*Pattern, error) {
	wide, err := widen(expr)
	if err != nil {
		return nil, err
	}
	re, err := syntax.Parse(wide, syntax.Perl)
	if err != nil {
		return nil, reason(err)
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, reason(err)
	}
	if len(prog.Inst) > maxInsts {
		return nil, errors.New("the expression is too large: " + strconv.Itoa(len(prog.Inst)) +
			" states, at most " + strconv.Itoa(maxInsts))
	}
	p := load(prog)
	if p.empty() {
		return nil, errors.New("the expression matches the empty text")
	}
	return p, nil
}

// reason strips the package's name and the widened expression, which its
// author never wrote, from a syntax error.
func reason(err error) error {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return errors.New(string(e.Code))
	}
	return err
}

// A Result is what a search knows.
type Result struct {
	Found      bool
	Start, End int // of the match, when Found

	// Open is the earliest start of a match that further text could bring or
	// change, and the length of the text when there is none. With Found it is
	// the length of the text.
	Open int
}

// Find searches s from byte offset from on for the leftmost match. What stands
// before from is looked at by \b and the like only. Unless final, the end of s
// is not the end of the text, and a match is found only when nothing that may
// follow can change it.
func (p *Pattern) Find(s string, from int, final bool) Result {
	return p.search(s, bounds{from: from}, final, leftmost)
}

// Earliest is Find for callers that need to know where the leftmost match
// starts but not how far it goes: it is found as soon as that is certain. End
// is where its shortest form ends. What began before floor and is still
// undecided is not waited for, and Open is never before floor.
func (p *Pattern) Earliest(s string, from, floor int, final bool) Result {
	return p.search(s, bounds{from, floor}, final, shortest)
}

// Match reports whether the pattern occurs anywhere in s, a whole text.
func (p *Pattern) Match(s string) bool {
	return p.search(s, bounds{}, true, any).Found
}

// MatchFull reports whether the whole of s is a match.
func (p *Pattern) MatchFull(s string) bool {
	return p.search(s, bounds{}, true, full).Found
}

// All calls yield for every match of s, a whole text, from left to right and
// without overlap, until it returns false.
func (p *Pattern) All(s string, yield func(start, end int) bool) {
	for at := 0; ; {
		r := p.Find(s, at, true)
		if !r.Found || !yield(r.Start, r.End) {
			return
		}
		at = r.End
	}
}
