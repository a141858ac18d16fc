package config

import (
	"errors"
	"fmt"
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
	l.add(file + ": " + keyName(path) + ": " + fmt.Sprintf(format, args...))
}

// variable reports an environment variable.
func (l *ledger) variable(name, format string, args ...any) {
	l.add("environment " + name + ": " + fmt.Sprintf(format, args...))
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
