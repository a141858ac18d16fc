package approval

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const maxTTLText = "token lifetime must be between 60 and 1800 seconds"

var (
	toolName     = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	argumentName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)
	actionName   = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)
)

// reserved are argument names by which a model could claim to be somebody or to
// have been allowed something (5.4).
func reserved() []string {
	return []string{"actor_id", "user_id", "userid", "user", "username", "email", "roles", "role",
		"request_id", "approval", "approved", "approval_token", "approval_id", "token", "nonce",
		"signature", "interaction_id", "execution_id", "override_requested"}
}

func (a *Action) validate() error {
	switch {
	case !toolName.MatchString(a.Tool):
		return errors.New("tool: expected a name of letters, digits, _ and -, at most 64")
	case !actionName.MatchString(a.Name):
		return errors.New("action: expected a name of letters, digits and _ . : -, at most 128")
	case blank(a.Description):
		return errors.New("description: expected text for the model")
	case a.TTL < MinTTL || a.TTL > MaxTTL:
		return errors.New("token_ttl: " + maxTTLText)
	case a.Rationale != RationaleRequired && a.Rationale != RationaleNone:
		return fmt.Errorf(`rationale: expected "required" or "none", got %s`, quote(a.Rationale))
	case a.MaxSummary < 1 || a.MaxSummary > maxResource:
		return fmt.Errorf("max_summary: expected 1 to %d, got %d", maxResource, a.MaxSummary)
	case a.MaxNote < 1 || a.MaxNote > maxResource:
		return fmt.Errorf("max_note: expected 1 to %d, got %d", maxResource, a.MaxNote)
	}
	for _, check := range []func() error{a.validateArguments, a.validateChoices, a.validateTexts, a.validatePrompts} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (a *Action) validateArguments() error {
	var seen []string
	for _, arg := range a.arguments() {
		switch {
		case !argumentName.MatchString(arg.name):
			return fmt.Errorf("arguments: expected a name of letters, digits and _, at most 64, got %s", quote(arg.name))
		case slices.Contains(reserved(), strings.ToLower(arg.name)):
			return fmt.Errorf("arguments: the name %s is reserved", quote(arg.name))
		case slices.Contains(seen, arg.name):
			return fmt.Errorf("arguments: expected different names, got %s again", quote(arg.name))
		}
		seen = append(seen, arg.name)
	}
	return nil
}

func (a *Action) validateChoices() error {
	if len(a.Choices) < 2 || len(a.Choices) >= MaxOptions {
		return fmt.Errorf("choices: expected 2 to %d, got %d", MaxOptions-1, len(a.Choices))
	}
	for i, choice := range a.Choices {
		switch {
		case blank(choice) || choice != strings.TrimSpace(choice) || !plain(choice) || utf8.RuneCountInString(choice) > 64:
			return fmt.Errorf("choices: expected visible text of at most 64 characters without space around it, entry %d is none", i+1)
		case choice == CancelID || choice == CancelValue:
			return fmt.Errorf("choices: %s means that the person cancels", choice)
		case slices.Contains(a.Choices[:i], choice):
			return fmt.Errorf("choices: expected each once, got %s again", quote(choice))
		}
	}
	return nil
}

// validateTexts checks that every slot has a value where it stands, and that
// what will be signed is shown before it is.
func (a *Action) validateTexts() error {
	known := []string{"{resource}", "{current}", "{requested}", "{summary}"}
	signed := []string{"{resource}", "{current}"}
	reason := []string{"{resource}", "{choice}"}
	if a.Arguments.Note != "" {
		known = append(known, slotNote)
		signed, reason = append(signed, slotNote), append(reason, slotNote)
	}
	withChoice := append(slices.Clone(known), "{choice}")
	t := &a.Texts
	checks := []error{
		checkTemplate("question", strings.Join(t.Question, "\n"), known, signed...),
		checkTemplate("keep", t.Keep, withChoice, "{choice}"),
		checkTemplate("keep_description", t.KeepDescription, withChoice),
		checkTemplate("change", t.Change, withChoice, "{choice}"),
		checkTemplate("change_description", t.ChangeDescription, withChoice),
		checkTemplate("reason", strings.Join(t.Reason, "\n"), withChoice, reason...),
		checkTemplate("placeholder", t.Placeholder, withChoice),
		checkTemplate("kept", t.Kept, withChoice),
		checkTemplate("unrecognised", t.Unrecognised, known),
	}
	for _, err := range checks {
		if err != nil {
			return fmt.Errorf("texts: %w", err)
		}
	}
	for name, text := range map[string]string{"cancel": t.Cancel, "kept": t.Kept, "unrecognised": t.Unrecognised} {
		if blank(text) {
			return fmt.Errorf("texts: %s: expected text", name)
		}
	}
	return nil
}

// validatePrompts makes the prompts of the longest proposal there can be.
func (a *Action) validatePrompts() error {
	long := func(n int) string { return strings.Repeat("\U0001F600", n) }
	p := &Proposal{action: a, resource: long(maxResource), current: a.Choices[0], requested: a.Choices[0],
		summary: long(a.MaxSummary), note: long(a.MaxNote)}
	if err := p.choicePrompt().check(); err != nil {
		return fmt.Errorf("texts: question: %w", err)
	}
	if err := p.reasonPrompt(a.Choices[0]).check(); err != nil {
		return fmt.Errorf("texts: reason: %w", err)
	}
	return nil
}

func (a *Action) offers(choice string) bool { return slices.Contains(a.Choices, choice) }

func blank(s string) bool { return strings.TrimSpace(s) == "" }
