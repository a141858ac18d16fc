package config

import (
	"maps"
	"slices"
	"time"
	"unicode/utf8"
)

const (
	minSecretChars = 24
	minTokenTTL    = 60 * time.Second
	maxTokenTTL    = 1800 * time.Second
	minTimeout     = 5 * time.Second
)

// ApprovalsOn tells whether people can be asked: an action is declared, there
// is a secret to sign with, and questions are switched on. A configuration that
// has passed the checks has all three or is read-only.
func (c *Config) ApprovalsOn() bool {
	return c.declares() && !blank(c.Approvals.Secret.Reveal()) && c.Approvals.Interactive
}

func (c *Config) declares() bool {
	for _, a := range c.Actions {
		if a.Enabled {
			return true
		}
	}
	return false
}

// approvals holds the three switches against each other (the contract's
// section 8.3): all of them or none, so that nobody believes in approvals that
// cannot happen.
//
//	declared   secret   interactive
//	no         any      no            starts, read-only
//	no         any      yes           refused
//	yes        no       any           refused
//	yes        yes      no            refused
//	yes        yes      yes           approvals are on
//
// A command that starts nothing has no secret and asks nobody: it takes any row.
func (k checker) approvals() {
	a := &k.c.Approvals
	secret := !blank(a.Secret.Reveal())
	if secret && utf8.RuneCountInString(a.Secret.Reveal()) < minSecretChars {
		k.l.variable("HITL_APPROVAL_SECRET", "expected at least %d characters", minSecretChars)
	}
	for _, name := range slices.Sorted(maps.Keys(k.c.Actions)) {
		action := k.c.Actions[name]
		k.action(name, &action)
		if !action.Enabled || k.keyless {
			continue
		}
		path := []string{"actions", name, "enabled"}
		switch {
		case !secret:
			k.l.key(k.c.file(), path, "true needs a secret to sign approvals with: set HITL_APPROVAL_SECRET, or set this to false")
		case !a.Interactive:
			k.l.key(k.c.file(), path, "true needs a way to ask a person: set HITL_ENABLE_INTERACTIVE to true, or set this to false")
		}
	}
	if a.Interactive && !k.c.declares() && !k.keyless {
		k.l.variable("HITL_ENABLE_INTERACTIVE", "true needs an action that a person may authorise: set enabled = true in an [actions.<tool>] table, or set this to false")
	}
	k.key(a.OnDisconnect == DisconnectCancel || a.OnDisconnect == DisconnectPark, "approvals.on_disconnect", `expected "cancel" or "park", got %q`, shorten(a.OnDisconnect))
	k.key(a.MaxPending >= 1, "approvals.max_pending", "expected at least 1, got %d", a.MaxPending)
	k.key(a.Timeout >= minTimeout, "approvals.timeout", "expected at least %s, got %s", minTimeout, a.Timeout)
	k.warnStore()
}

// action checks what this package understands of an action; what its parts mean
// together, host/approval checks before anything is started.
func (k checker) action(name string, a *Action) {
	at := func(ok bool, key, format string, args ...any) {
		if !ok {
			k.l.key(k.c.file(), []string{"actions", name, key}, format, args...)
		}
	}
	at(!slices.Contains(k.c.Tools.MCP.Include, name), "enabled", "expected a tool that [tools.mcp] include does not list: those are read-only")
	at(!blank(a.Action), "action", "expected the name that the executing server knows")
	at(!blank(a.Description), "description", "expected text for the model")
	at(len(a.Choices) >= 2, "choices", "expected at least 2, got %d", len(a.Choices))
	at(a.Rationale == RationaleRequired || a.Rationale == RationaleNone, "rationale", `expected "required" or "none", got %q`, shorten(a.Rationale))
	at(a.TokenTTL >= minTokenTTL && a.TokenTTL <= maxTokenTTL, "token_ttl", "expected %s to %s, got %s", minTokenTTL, maxTokenTTL, a.TokenTTL)
	at(a.MaxSummary >= 1 && a.MaxSummary <= 4096, "max_summary", "expected 1 to 4096, got %d", a.MaxSummary)
	at(a.MaxNote >= 1 && a.MaxNote <= 4096, "max_note", "expected 1 to 4096, got %d", a.MaxNote)
}
