package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ledger collects what is wrong, so that a person sees all of it at once.
type ledger struct {
	errs []error
	// overruled is the variable that set a dotted key: there the value has to
	// be put right.
	overruled map[string]string
	// origins says where the values of dotted keys come from; what is not
	// there is a default.
	origins map[string]origin
	// under is the table whose keys are being checked as if it were the whole
	// document, with what is known to be wrong with the document itself: that
	// is not said again.
	under []string
	known []error
}

// overrule notes that a variable set a key.
func (l *ledger) overrule(key, variable string) {
	if l.overruled == nil {
		l.overruled = map[string]string{}
	}
	l.overruled[key] = variable
	l.origin(key, origin{SourceVariable, variable})
}

// key reports a key of agent.toml, `agent.toml: [server] listen: expected …`,
// or the variable that overruled it.
func (l *ledger) key(file string, path []string, format string, args ...any) {
	if variable := l.overruled[strings.Join(path, ".")]; variable != "" {
		l.variable(variable, format, args...)
		return
	}
	text := ": " + fmt.Sprintf(format, args...)
	if !l.says(file + ": " + keyName(path) + text) {
		l.add(file + ": " + keyName(l.path(path)) + text)
	}
}

// path is where a key stands in the document.
func (l *ledger) path(path []string) []string { return slices.Concat(l.under, path) }

// says tells whether a problem is known of the document itself.
func (l *ledger) says(text string) bool {
	return slices.ContainsFunc(l.known, func(err error) bool { return err.Error() == text })
}

// variable reports an environment variable.
func (l *ledger) variable(name, format string, args ...any) {
	if text := "environment " + name + ": " + fmt.Sprintf(format, args...); !l.says(text) {
		l.add(text)
	}
}

func (l *ledger) add(text string) { l.errs = append(l.errs, errors.New(text)) }

// keyName writes a path as people find it: the table, then the key.
func keyName(path []string) string {
	if len(path) == 0 {
		return "document"
	}
	last := len(path) - 1
	if last == 0 {
		return path[0]
	}
	return "[" + strings.Join(path[:last], ".") + "] " + path[last]
}
