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
)

// approvals holds the three switches against each other (the contract's
// section 8.3): all of them or none, so that nobody believes in approvals that
// cannot happen. All of them is refused as well until this program can serve
// them.
//
//	declared   secret   interactive
//	no         any      no            starts, read-only
//	no         any      yes           refused
//	yes        no       any           refused
//	yes        yes      no            refused
//	yes        yes      yes           refused by this version
func (k checker) approvals() {
	a := &k.c.Approvals
	secret := !blank(a.Secret.Reveal())
	if secret && utf8.RuneCountInString(a.Secret.Reveal()) < minSecretChars {
		k.l.variable("HITL_APPROVAL_SECRET", "expected at least %d characters", minSecretChars)
	}
	declared := false
	for _, name := range slices.Sorted(maps.Keys(k.c.Actions)) {
		action := k.c.Actions[name]
		if action.TokenTTL < minTokenTTL || action.TokenTTL > maxTokenTTL {
			k.l.key(k.c.file(), []string{"actions", name, "token_ttl"}, "expected %s to %s, got %s", minTokenTTL, maxTokenTTL, action.TokenTTL)
		}
		if !action.Enabled {
			continue
		}
		declared = true
		path := []string{"actions", name, "enabled"}
		switch {
		case !secret:
			k.l.key(k.c.file(), path, "true needs a secret to sign approvals with: set HITL_APPROVAL_SECRET, or set this to false")
		case !a.Interactive:
			k.l.key(k.c.file(), path, "true needs a way to ask a person: set HITL_ENABLE_INTERACTIVE to true, or set this to false")
		default:
			k.l.key(k.c.file(), path, "this version does not serve approvals yet: set this and HITL_ENABLE_INTERACTIVE to false to run read-only")
		}
	}
	if a.Interactive && !declared {
		k.l.variable("HITL_ENABLE_INTERACTIVE", "true needs an action that a person may authorise: set enabled = true in an [actions.<tool>] table, or set this to false")
	}
}
