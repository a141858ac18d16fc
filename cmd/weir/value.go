package main

import (
	"errors"
	"flag"
	"time"
)

// told is a flag's value that says what it expected where package flag says
// "parse error". All numbers of this program are counts and times, so none is
// negative.
type told struct{ flag.Value }

// tell makes every value of f say what it expects.
func tell(f *flag.FlagSet) {
	f.VisitAll(func(one *flag.Flag) { one.Value = told{one.Value} })
}

// untell takes that back for the help of package flag, which knows its own types
// only.
func untell(f *flag.FlagSet) {
	f.VisitAll(func(one *flag.Flag) {
		if t, ok := one.Value.(told); ok {
			one.Value = t.Value
		}
	})
}

// IsBoolFlag lets a flag stand without a value where the one behind it may.
func (t told) IsBoolFlag() bool {
	b, ok := t.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// Set implements flag.Value.
func (t told) Set(text string) error {
	err := t.Value.Set(text)
	kind, ok := t.Value.(flag.Getter)
	if !ok {
		return err
	}
	switch v := kind.Get().(type) {
	case time.Duration:
		return expect(err, v < 0, "expected a positive duration with its unit, such as 5s or 1m30s")
	case int:
		return expect(err, v < 0, "expected a whole number, none below 0")
	case uint64:
		return expect(err, false, "expected a whole number, none below 0")
	case float64:
		return expect(err, v < 0, "expected a number, none below 0")
	case bool:
		return expect(err, false, "expected true or false")
	}
	return err
}

func expect(err error, wrong bool, text string) error {
	if err == nil && !wrong {
		return nil
	}
	return errors.New(text)
}
