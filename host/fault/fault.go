// Package fault names the kinds of error that weir's parts tell apart. An error
// gets its kind where it is first known; everybody above wraps it with %w, and
// each contract maps kinds to its wire in one table.
package fault

import (
	"errors"
	"fmt"
)

// A Kind says what an error means for whoever answers.
type Kind uint8

// The kinds. The zero value is Internal, so a plain error is an internal one.
const (
	Internal        Kind = iota // a bug or a broken dependency of the host
	Invalid                     // the input is not what was asked for
	Unauthenticated             // nobody, or nobody certain, is asking
	Denied                      // somebody known may not do this
	NotFound                    // no such thing, or none that may be seen
	Conflict                    // somebody else was first
	Gone                        // it was there and has ended
	Blocked                     // a policy says no
	Limit                       // a bound was reached
	Unavailable                 // a dependency does not answer; later it may
	Plugin                      // a plugin failed
)

var names = [...]string{"internal", "invalid", "unauthenticated", "denied", "not found",
	"conflict", "gone", "blocked", "limit", "unavailable", "plugin"}

func (k Kind) String() string {
	if int(k) < len(names) {
		return names[k]
	}
	return "internal"
}

// Error is an error with a kind. Code is a stable word for callers that branch
// within one kind (for instance "timeout"); it may be empty.
type Error struct {
	Kind Kind
	Code string
	text string
	err  error
}

func (e *Error) Error() string { return e.text }

// Unwrap returns the cause, which may be nil.
func (e *Error) Unwrap() error { return e.err }

// New returns an error of a kind. The text is formatted like fmt.Errorf,
// including %w: lower case, no full stop, says what was expected.
func New(kind Kind, format string, args ...any) error {
	return Coded(kind, "", format, args...)
}

// Coded is New with a code.
func Coded(kind Kind, code, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Code: code, text: err.Error(), err: errors.Unwrap(err)}
}

// Of returns the kind of the outermost [Error] in err's chain, and Internal if
// there is none.
func Of(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// CodeOf returns the code of the outermost [Error] in err's chain that has one.
func CodeOf(err error) string {
	for err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			return ""
		}
		if e.Code != "" {
			return e.Code
		}
		err = e.err
	}
	return ""
}
