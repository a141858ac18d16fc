package plugin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"weir/abi"
	"weir/host/fault"
)

// Codes of a [fault.Plugin] error: why a call brought no answer.
const (
	CodeTrap        = "trap"        // the guest broke a rule of WebAssembly, or ended itself so
	CodeTimeout     = "timeout"     // it did not answer in its time
	CodeFuel        = "fuel"        // it used up its fuel
	CodeExit        = "exit"        // it called proc_exit, with whatever code
	CodeMemory      = "memory"      // it ended after its memory could not grow
	CodeBadReply    = "bad_reply"   // its reply is missing, out of range or not the message
	CodeTooLarge    = "too_large"   // its reply is above the limit
	CodeCancelled   = "cancelled"   // the caller does not wait any more
	CodeUnavailable = "unavailable" // no instance was free in time, or the plugin is closed
)

// failure is the error of one call, before it is known whose.
type failure struct {
	code string
	text string
}

func (f *failure) Error() string { return f.text }

func failed(code, format string, args ...any) error {
	return &failure{code: code, text: fmt.Sprintf(format, args...)}
}

// ended explains why a guest function did not return: the host ended it, for a
// reason of its own, or the guest trapped. A guest that is out of memory dies
// in many ways.
func (i *instance) ended(err error) error {
	if i.sdk != nil {
		err = i.sdk.cause(err)
	}
	f, byHost := errors.AsType[*failure](err)
	switch {
	case byHost && f.code != CodeExit:
		return f
	case i.memory.refused:
		return failed(CodeMemory, "out of memory: the limit is %d MiB", i.limits.Memory>>20)
	case byHost:
		return f
	}
	return failed(CodeTrap, "trap: %s", firstLine(err.Error()))
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
	if f.code != CodeCancelled { // the caller's doing
		p.runtime.failed(p.name, hook, f.code)
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
