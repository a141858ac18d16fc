package abi

import (
	"errors"
	"strconv"
	"strings"
)

// Validate checks a plugin's description of itself.
func (m *Description) Validate() error {
	switch {
	case !pluginName(m.Name):
		return errors.New("name " + quoted(m.Name) + ": expected 1 to 64 of a-z, 0-9 and -")
	case !semanticVersion(m.Version):
		return errors.New("version " + quoted(m.Version) + ": expected a semantic version such as 1.0.0")
	case m.ABI != Version:
		return errors.New("abi " + strconv.Itoa(m.ABI) + ": expected " + strconv.Itoa(Version))
	case m.Kind != KindGuardrail && m.Kind != KindWorkflow:
		return oneOf("kind", m.Kind, KindGuardrail, KindWorkflow)
	case len(m.Cases) > MaxCases:
		return errors.New("cases: " + strconv.Itoa(len(m.Cases)) + ", expected at most " + strconv.Itoa(MaxCases))
	case m.Limits != nil && (m.Limits.MemoryMiB < 0 || m.Limits.TimeoutMS < 0):
		return errors.New("limits: expected no negative number")
	}
	if err := object("config_schema", m.ConfigSchema); err != nil {
		return err
	}
	if err := distinct("prompts", "", len(m.Prompts), func(i int) string { return m.Prompts[i] }); err != nil {
		return err
	}
	for i, s := range m.Skills {
		if s.ID == "" || s.Name == "" {
			return item("skills", i, errors.New("expected an id and a name"))
		}
	}
	for i := range m.Cases {
		if err := m.Cases[i].validate(m.Kind); err != nil {
			return item("cases", i, err)
		}
	}
	return nil
}

// validate checks a self-check of a plugin of the given kind.
func (m *Case) validate(kind string) error {
	if m.Name == "" {
		return errors.New("name: empty")
	}
	want := KindGuardrail
	switch m.Hook {
	case HookStep:
		want = KindWorkflow
	case HookCheckInput, HookCheckOutput, HookCheckToolCall, HookCheckToolResult:
	default:
		return errors.New("hook " + quoted(string(m.Hook)) + ": expected a check or step")
	}
	if kind != want {
		return errors.New("hook " + quoted(string(m.Hook)) + ": a " + kind + " has none")
	}
	if err := object("request", m.Request); err != nil {
		return err
	}
	return object("expect", m.Expect)
}

// Validate checks a reply to configure. Whether a pattern's expression compiles
// is for whoever has the matcher.
func (m *ConfigureReply) Validate() error {
	switch {
	case m.Error != "" && (len(m.Patterns) > 0 || m.SendMatches || m.LookBehind != 0 || m.HoldBack != 0 || len(m.Prompts) > 0):
		return errors.New("error: nothing else may stand beside it")
	case m.LookBehind < 0 || m.LookBehind > MaxLookBehind:
		return outside("look_behind", m.LookBehind, MaxLookBehind)
	case m.HoldBack < 0 || m.HoldBack > MaxLookBehind:
		return outside("hold_back", m.HoldBack, MaxLookBehind)
	case m.SendMatches && len(m.Patterns) == 0:
		return errors.New("send_matches: there are no patterns")
	}
	for i, p := range m.Patterns {
		switch {
		case p.Expr == "":
			return item("patterns", i, errors.New("expr: empty"))
		case p.Bound < 0:
			return item("patterns", i, errors.New("bound "+strconv.Itoa(p.Bound)+": expected no negative number"))
		}
	}
	if err := distinct("patterns", "id", len(m.Patterns), func(i int) string { return m.Patterns[i].ID }); err != nil {
		return err
	}
	return distinct("prompts", "", len(m.Prompts), func(i int) string { return m.Prompts[i] })
}

func outside(name string, n, most int) error {
	return errors.New(name + " " + strconv.Itoa(n) + ": expected 0 to " + strconv.Itoa(most))
}

// distinct checks that the names of n items are there and differ. Member is
// where an item has its name, empty if it is nothing else.
func distinct(list, member string, n int, name func(int) string) error {
	seen := make(map[string]bool, n)
	for i := range n {
		switch s := name(i); {
		case s == "":
			return item(list, i, under(member, errors.New("empty")))
		case seen[s]:
			return item(list, i, under(member, errors.New(quoted(s)+" is there already")))
		default:
			seen[s] = true
		}
	}
	return nil
}

func under(member string, err error) error {
	if member == "" {
		return err
	}
	return within(member, err)
}

func pluginName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// semanticVersion says whether s is MAJOR.MINOR.PATCH[-PRE][+BUILD] by semver 2.0.0.
func semanticVersion(s string) bool {
	if len(s) > 128 {
		return false
	}
	core, build, plus := strings.Cut(s, "+")
	core, pre, dash := strings.Cut(core, "-")
	if plus && !identifiers(build, false) || dash && !identifiers(pre, true) {
		return false
	}
	parts := strings.Split(core, ".")
	for _, p := range parts {
		if !numeric(p) || leadingZero(p) {
			return false
		}
	}
	return len(parts) == 3
}

func identifiers(s string, pre bool) bool {
	for _, id := range strings.Split(s, ".") {
		if id == "" || pre && numeric(id) && leadingZero(id) {
			return false
		}
		for i := range len(id) {
			if c := id[i]; (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' {
				return false
			}
		}
	}
	return true
}

func numeric(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func leadingZero(s string) bool { return len(s) > 1 && s[0] == '0' }
