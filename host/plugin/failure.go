package plugin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"weir/abi"
	"weir/host/fault"
)

// Codes of a [fault.Plugin] error: why a call brought no answer.
const (
	CodeTrap        = "trap"        // the guest broke a rule of WebAssembly, or ended itself so
	CodeTimeout     = "timeout"     // it did not answer in its time
	CodeExit        = "exit"        // it called proc_exit, with whatever code
	CodeMemory      = "memory"      // it ended after its memory could not grow
	CodeBadReply    = "bad_reply"   // its reply is missing, out of range or not the message
	CodeTooLarge    = "too_large"   // its reply is above the limit
	CodeCancelled   = "cancelled"   // the caller does not wait any more
	CodeUnavailable = "unavailable" // no instance was free in time, or the plugin is closed
)

var errTimeLimit = errors.New("time limit")

// failure is the error of one call, before it is known whose.
type failure struct {
	code string
	text string
}

func (f *failure) Error() string { return f.text }

func failed(code, format string, args ...any) error {
	return &failure{code: code, text: fmt.Sprintf(format, args...)}
}

// ended explains why a guest function did not return. ctx is the one that it
// was called with. The order matters: a guest may pass the numbers to proc_exit
// that wazero uses for a deadline, and dies in many ways once it is out of memory.
func (i *instance) ended(ctx context.Context, err error) error {
	exit, isExit := errors.AsType[*sys.ExitError](err)
	switch {
	case i.memory.refused && (!isExit || i.session.exited):
		return failed(CodeMemory, "out of memory: the limit is %d MiB", i.limits.Memory>>20)
	case i.session.exited:
		return failed(CodeExit, "called proc_exit(%d)", i.session.exitCode)
	case isExit && ctx.Err() != nil:
		return stopped(ctx)
	case isExit:
		return failed(CodeTrap, "ended with code %d", exit.ExitCode())
	}
	return failed(CodeTrap, "trap: %s", firstLine(err.Error()))
}

// stopped explains why a call's context ended.
func stopped(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case cause == errTimeLimit:
		return failed(CodeTimeout, "no reply within its time limit")
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failed(CodeTimeout, "no reply before the caller's deadline")
	}
	return failed(CodeCancelled, "the caller cancelled")
}

// waited explains why an instance did not come free.
func waited(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failed(CodeUnavailable, "no instance was free in time")
	}
	return failed(CodeCancelled, "the caller cancelled")
}

// report turns a failure into the error that callers see. What the guest
// printed last often tells why, but may quote a user: it is shown only where
// the operator lets the plugin log, or before any user's data came near it.
func (p *Plugin) report(hook string, err error, said string) error {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return fmt.Errorf("plugin %s: %s: %w", p.name, hook, err)
	}
	if said != "" {
		return fault.Coded(fault.Plugin, f.code, "plugin %s: %s: %s; it printed %s", p.name, hook, err.Error(), quote(said))
	}
	return fault.Coded(fault.Plugin, f.code, "plugin %s: %s: %s", p.name, hook, err.Error())
}

// firstLine takes a wazero error without its stack trace, whose function names
// are the guest's.
func firstLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	text = strings.TrimPrefix(text, "wasm error: ")
	text = strings.TrimSuffix(text, " (recovered by wazero)")
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '.'
		}
		return r
	}, text[:min(len(text), 200)])
}

// mayQuote tells whether a failure may show what the guest printed.
func (p *Plugin) mayQuote(hook abi.Hook) bool {
	return p.printed.logger != nil || !p.ready || hook == abi.HookConfigure
}
