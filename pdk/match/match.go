// Package match finds a set of regular expressions in text that may still grow.
//
// Expressions have Go's syntax and, each for itself, Go's leftmost-first
// meaning, with three differences that a guardrail needs:
//
//   - \b, \w, \d and \s are those of Unicode. Go's own are those of ASCII, so
//     a no-break space would hide what a plain space does not.
//   - Repetitions without a maximum get one, so from the text alone it is known
//     how far a match can reach. The bounded expression ([Set.Expr]) is what is
//     matched, in whole texts too.
//   - An expression that can match nothing at all is refused.
//
// A [Scanner] reads a text that grows. After each piece it tells the matches
// that no further text can change, and from where on the text is undecided:
//
//	decided                       │ open
//	… match … match …             │ may become part of a match
//	0                             ▲                            end
//
// What it says does not depend on the pieces, and nothing stands behind open
// that could have been decided: some continuation of the text has a match that
// begins at open.
//
// # How
//
// One automaton for the whole set reads the text, a table look-up for each
// character. It is built as texts need it, and from looser expressions than the
// set's (large counts are stars), so that it stays small. It never misses
// anything; it only says where nothing is in progress. Between two such places,
// and for the patterns that it names, finders decide exactly: they carry where
// each attempt began. Time is linear in the text for every set and every text,
// and memory does not grow with it.
package match

import (
	"errors"
	"regexp/syntax"
	"strconv"
)

const (
	// DefaultBound is the maximum of a repetition that states none.
	DefaultBound = 256
	// SpaceBound is that of a repetition of white space.
	SpaceBound = 64
	// Unbounded leaves repetitions as they are. A scanner of such a pattern may
	// have to hold back everything.
	Unbounded = -1

	// maxInsts bounds one compiled expression, and with it the time that one
	// character can take.
	maxInsts = 8192
	// maxPatterns and maxTotal bound a set, and maxClasses the width of its states.
	maxPatterns = 1 << 12
	maxTotal    = 1 << 17
	maxClasses  = 1 << 13
	// stateBytes is what a state of an automaton takes, where there are not many
	// patterns.
	stateBytes = 1 << 10
)

// A Pattern is one member of a set.
type Pattern struct {
	// ID is the caller's name for it; the set only keeps it.
	ID string
	// Expr is the expression.
	Expr string
	// Bound is the maximum of repetitions that have none, DefaultBound when it
	// is 0. White space never gets more than SpaceBound.
	Bound int
	// Minimal patterns are decided at their shortest match: the leftmost start,
	// and the first place where a match from there can end.
	Minimal bool
}

// Options of a set. The zero value is the default.
type Options struct {
	// MaxStates bounds the automaton's memory, with a kilobyte for each: the
	// default of 4096 is a few megabytes. With fewer than a text needs the set
	// becomes slow, never wrong.
	MaxStates int
}

// A Match is one match of one pattern, as byte offsets.
type Match struct {
	Pattern    int // its place in the set
	Start, End int
}

// A Set is a compiled set of patterns. It may be used concurrently.
type Set struct {
	patterns []pattern
	abc      *alphabet
	search   *automaton // of what is in progress anywhere
	sieve    *automaton // of the parts that a whole text must have
	fit      *automaton // of what began at the beginning
	most     int        // instructions of the largest program
}

// pattern is a member, compiled.
type pattern struct {
	Pattern
	prog  *program
	loose *program   // what automata are made of; prog itself when that is as good
	parts []*program // of loose, between its wide gaps
	part  int        // where these begin among the sieve's
}

// An ExprError says which pattern of a set does not compile, and why, for
// whoever wrote it.
type ExprError struct {
	Pattern int
	Reason  error
}

func (e *ExprError) Error() string {
	return "pattern " + strconv.Itoa(e.Pattern) + ": " + e.Reason.Error()
}

// Unwrap returns the reason.
func (e *ExprError) Unwrap() error { return e.Reason }

// Compile compiles a set. Its error is an *ExprError when an expression is to
// blame.
func Compile(patterns []Pattern, opts Options) (*Set, error) {
	if len(patterns) == 0 || len(patterns) > maxPatterns {
		return nil, errors.New("expected 1 to " + strconv.Itoa(maxPatterns) + " patterns")
	}
	if opts.MaxStates <= 0 {
		opts.MaxStates = 4096
	}
	s := &Set{patterns: make([]pattern, len(patterns))}
	var b alphabetBuilder
	total := 0
	for i, p := range patterns {
		if err := s.patterns[i].compile(p, &b); err != nil {
			return nil, &ExprError{i, err}
		}
		if total += len(s.patterns[i].prog.insts); total > maxTotal {
			return nil, errors.New("the expressions together are too large: more than " + strconv.Itoa(maxTotal) + " states")
		}
	}
	if s.abc = b.build(); len(b.sets) > maxClasses || len(s.abc.kind) > maxClasses {
		return nil, errors.New("the patterns tell too many classes of characters apart: at most " + strconv.Itoa(maxClasses))
	}
	for i := range s.patterns {
		p := &s.patterns[i]
		p.prog.finish(s.abc)
		s.most = max(s.most, len(p.prog.insts))
	}
	s.search = newAutomaton(s.abc, opts.MaxStates, false)
	s.sieve = newAutomaton(s.abc, opts.MaxStates, false)
	s.fit = newAutomaton(s.abc, opts.MaxStates, true)
	for i := range s.patterns {
		p := &s.patterns[i]
		s.search.add(p.loose, i)
		s.fit.add(p.loose, i)
		p.part = len(s.sieve.of)
		for _, part := range p.parts {
			s.sieve.add(part, i)
		}
	}
	return s, nil
}

func (p *pattern) compile(src Pattern, b *alphabetBuilder) error {
	p.Pattern = src
	re, err := p.parse()
	if err != nil {
		return err
	}
	if p.prog, err = load(re, b); err != nil {
		return err
	}
	if p.prog.empty() {
		return errors.New("the expression matches the empty text")
	}
	p.loose = p.prog
	if loose, changed := loosened(re); changed {
		re = loose
		if p.loose, err = load(re, b); err != nil {
			return err
		}
	}
	return p.split(re, b)
}

// parse returns the bounded expression.
func (p *pattern) parse() (*syntax.Regexp, error) {
	wide, err := widen(p.Expr)
	if err != nil {
		return nil, err
	}
	re, err := syntax.Parse(wide, syntax.Perl)
	if err != nil {
		return nil, reason(err)
	}
	if p.Bound == Unbounded {
		return re, nil
	}
	return bounded(re, p.Bound), nil
}

// split finds the parts of a loose expression. One that can be empty says
// nothing, and then the whole stays in one piece.
func (p *pattern) split(loose *syntax.Regexp, b *alphabetBuilder) error {
	p.parts = []*program{p.loose}
	list := segments(loose)
	if len(list) < 2 {
		return nil
	}
	var parts []*program
	for _, re := range list {
		part, err := load(re, b)
		if err != nil {
			return err
		}
		if part.empty() {
			return nil
		}
		parts = append(parts, part)
	}
	p.parts = parts
	return nil
}

// reason strips the package's name and the widened expression, which its
// author never wrote, from a syntax error.
func reason(err error) error {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return errors.New(string(e.Code))
	}
	return err
}

// Len returns how many patterns the set has.
func (s *Set) Len() int { return len(s.patterns) }

// ID returns the name of pattern i.
func (s *Set) ID(i int) string { return s.patterns[i].ID }

// Expr returns what pattern i matches, in Go's syntax: with Unicode's classes
// written out and with its bounds. Only \b still has two meanings.
func (s *Set) Expr(i int) string {
	re, err := s.patterns[i].parse()
	if err != nil {
		panic(err) // it was parsed before
	}
	return re.String()
}
