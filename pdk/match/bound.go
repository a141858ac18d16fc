package match

import (
	"errors"
	"regexp/syntax"
	"strconv"
	"unicode"
)

// bounded returns re with a maximum for every repetition that has none. What it
// does not change it shares with re.
func bounded(re *syntax.Regexp, bound int) *syntax.Regexp {
	if bound == 0 {
		bound = DefaultBound
	}
	re, _ = rewrite(re, func(re *syntax.Regexp) (least, most int, ok bool) {
		least, most, ok = repetition(re)
		if !ok || most >= 0 {
			return 0, 0, false
		}
		most = bound
		if blank(re.Sub[0]) {
			most = min(most, SpaceBound)
		}
		return least, max(most, least, 1), true
	})
	return re
}

const (
	// maxCount is the largest maximum that the automaton counts to.
	maxCount = 4
	// minCount is the largest minimum. Long minima are what keeps dates and
	// ticket ids from being looked at as cards and wallets.
	minCount = 16
)

// loosened returns an expression that matches whatever re does, and more, with
// fewer states: it does not count far.
func loosened(re *syntax.Regexp) (*syntax.Regexp, bool) {
	return rewrite(re, func(re *syntax.Regexp) (least, most int, ok bool) {
		least, most, ok = repetition(re)
		if !ok || 0 <= most && most <= maxCount || most < 0 && least <= minCount {
			return 0, 0, false
		}
		return min(least, minCount), -1, true
	})
}

// segments cuts an expression at its wide gaps: of \bshow\b.{0,80}\bplan\b it
// returns \bshow\b and \bplan\b. Whatever re matches has a match of each of them,
// one behind the other.
func segments(re *syntax.Regexp) (list []*syntax.Regexp) {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	if re.Op != syntax.OpConcat {
		return []*syntax.Regexp{re}
	}
	from := 0
	for i, sub := range append(re.Sub[:len(re.Sub):len(re.Sub)], nil) {
		if sub != nil && (i == 0 || !gap(sub)) {
			continue
		}
		if from < i {
			list = append(list, &syntax.Regexp{Op: syntax.OpConcat, Flags: re.Flags, Sub: re.Sub[from:i]})
		}
		from = i + 1
	}
	return list
}

// gap reports whether re reads many characters, of any kind.
func gap(re *syntax.Regexp) bool {
	least, most, ok := repetition(re)
	if !ok || least > maxCount || 0 <= most && most <= maxCount {
		return false
	}
	op := re.Sub[0].Op
	return op == syntax.OpAnyChar || op == syntax.OpAnyCharNotNL
}

// repetition returns the counts of a repetition; most is -1 when it has no
// maximum. An optional part is none.
func repetition(re *syntax.Regexp) (least, most int, ok bool) {
	switch re.Op {
	case syntax.OpStar:
		return 0, -1, true
	case syntax.OpPlus:
		return 1, -1, true
	case syntax.OpRepeat:
		return re.Min, re.Max, true
	}
	return 0, 0, false
}

// rewrite gives repetitions other counts where count says so, and reports
// whether it did.
func rewrite(re *syntax.Regexp, count func(*syntax.Regexp) (least, most int, ok bool)) (*syntax.Regexp, bool) {
	out, changed := re, false
	own := func() {
		if !changed {
			c := *re
			c.Sub = append([]*syntax.Regexp(nil), re.Sub...)
			out, changed = &c, true
		}
	}
	for i, sub := range re.Sub {
		if sub, ok := rewrite(sub, count); ok {
			own()
			out.Sub[i] = sub
		}
	}
	if least, most, ok := count(re); ok {
		own()
		out.Op, out.Min, out.Max = syntax.OpRepeat, least, most
	}
	return out, changed
}

// blank reports whether re reads one character, and that white space.
func blank(re *syntax.Regexp) bool {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	if re.Op == syntax.OpLiteral {
		return len(re.Rune) == 1 && unicode.IsSpace(re.Rune[0])
	}
	if re.Op != syntax.OpCharClass || len(re.Rune) == 0 {
		return false
	}
	for i := 0; i < len(re.Rune); i += 2 {
		if re.Rune[i+1]-re.Rune[i] > 64 {
			return false
		}
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			if !unicode.IsSpace(r) {
				return false
			}
		}
	}
	return true
}

// checkSize refuses expressions that would be too large to write out, before
// anybody does.
func checkSize(re *syntax.Regexp) error {
	if n := size(re); n > maxInsts {
		return errors.New("the expression is too large: " + strconv.Itoa(n) +
			" states, at most " + strconv.Itoa(maxInsts))
	}
	return nil
}

// size estimates the instructions of re. It stops counting far above maxInsts.
func size(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n = min(n+size(sub), 1<<20)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, 1<<20)
}
