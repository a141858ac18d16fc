package guard

import (
	"slices"
	"strconv"

	"weir/abi"
	"weir/abi/strictjson"
)

// member is one member of a decision object.
type member struct {
	name  string
	value abi.Raw
}

// members is an object that keeps its order.
type members []member

// readMembers reads an object strictly.
func readMembers(object abi.Raw) (members, error) {
	var list members
	d := strictjson.NewDecoder(object)
	err := d.Object(func(name string) error {
		raw, err := d.Raw()
		if err != nil {
			return err
		}
		value, err := strictjson.Compact(nil, raw)
		list = append(list, member{name, value})
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, d.End()
}

func (m members) index(name string) int {
	return slices.IndexFunc(m, func(e member) bool { return e.name == name })
}

// set replaces the member's value where it stands, or inserts it after the
// first of the named members that exists, else at the end.
func (m members) set(name string, value abi.Raw, after ...string) members {
	if i := m.index(name); i >= 0 {
		m[i].value = value
		return m
	}
	at := len(m)
	for _, a := range after {
		if i := m.index(a); i >= 0 {
			at = i + 1
			break
		}
	}
	return slices.Insert(m, at, member{name, value})
}

func (m members) without(name string) members {
	return slices.DeleteFunc(m, func(e member) bool { return e.name == name })
}

func (m members) appendJSON(b []byte) []byte {
	b = append(b, '{')
	for i, e := range m {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(b, e.name)
		b = append(b, ':')
		b = append(b, e.value...)
	}
	return append(b, '}')
}

// event builds the decision event of a chain of verdicts. The members are the
// first guard's in its own order; the host sets those that speak of the whole
// chain, in place where the guard left room for them and else where 2.7 has
// them, and appends what every guard said.
func (c *checks) event(stage string, extra []member) abi.Raw {
	m, _ := readMembers(c.decision) // checked with the verdict; none reads as empty
	own := len(m) > 0
	m = m.without("guards")
	if i := m.index("stage"); i < 0 {
		m = slices.Insert(m, 0, member{name: "stage"})
	}
	m = m.set("stage", text(stage))
	if !own {
		m = m.set("name", text(c.name(stage)), "stage")
	}
	m = m.set("outcome", text(c.outcome()), "name", "stage")
	m = m.set("blocked", boolean(c.blocked()), "outcome")
	// The contract's short form, of an input that was refused unread, has
	// neither of the next two; a guard that asked no model may use it.
	if full := !own || c.asks > 0; full || m.index("modified") >= 0 {
		m = m.set("modified", boolean(false), "blocked")
	}
	for _, e := range extra {
		m = m.set(e.name, e.value, "modified", "blocked")
	}
	if source := c.source(); source != "" || m.index("decision_source") < 0 {
		if source == "" {
			source = "plugin:" + c.tallies[0].guard.Name
		}
		m = m.set("decision_source", text(source))
	}
	if full := !own || c.asks > 0; full || m.index("llm_call_count") >= 0 {
		m = m.set("llm_call_count", number(c.asks))
	}
	m = append(m, member{"guards", c.guards()})
	return m.appendJSON(nil)
}

func (c *checks) outcome() string {
	if c.approves() {
		return "approval_required"
	}
	return outcome(c.blocked(), false)
}

// name stands in a decision whose first guard said nothing.
func (c *checks) name(stage string) string {
	if len(c.tallies) == 0 {
		return stage
	}
	return c.tallies[0].guard.Name
}

// source is who decided, where that is not for the first guard to say.
func (c *checks) source() string {
	switch {
	case len(c.tallies) == 0:
		return "none"
	case c.blocker > 0 && c.verdict != nil:
		return "plugin:" + c.tallies[c.blocker].guard.Name
	case c.blocker >= 0 && c.verdict == nil:
		return "plugin_failure:" + c.tallies[c.blocker].guard.Name
	case c.tallies[0].err != nil:
		return "plugin_failure:" + c.tallies[0].guard.Name
	}
	return ""
}

func (c *checks) guards() abi.Raw {
	return entries(c.all, func(i int) *tally { return &c.tallies[i] })
}

// entries lists all guards of a stage. Tally is the i-th enforcing one's; those
// in monitor mode have not judged yet, and nobody waits for them.
func entries(all []*Guard, enforcing func(i int) *tally) abi.Raw {
	b := []byte{'['}
	next := 0
	for i, g := range all {
		if i > 0 {
			b = append(b, ',')
		}
		if g.Monitor {
			b = (&tally{guard: g, verdict: VerdictPending}).appendJSON(b)
			continue
		}
		b = enforcing(next).appendJSON(b)
		next++
	}
	return append(b, ']')
}

func (g *Guard) mode() string {
	if g.Monitor {
		return "monitor"
	}
	return "enforce"
}

// appendJSON appends the guard's entry under guards.
func (t *tally) appendJSON(b []byte) []byte {
	b = append(b, `{"name":`...)
	b = strictjson.AppendString(b, t.guard.Name)
	b = append(b, `,"digest":`...)
	b = strictjson.AppendString(b, t.guard.Digest)
	b = append(b, `,"mode":`...)
	b = strictjson.AppendString(b, t.guard.mode())
	b = append(b, `,"verdict":`...)
	b = strictjson.AppendString(b, t.verdict)
	b = append(b, `,"reason_code":`...)
	b = strictjson.AppendString(b, t.reasonCode)
	b = append(b, `,"fuel":`...)
	b = strconv.AppendUint(b, t.fuel, 10)
	b = append(b, `,"ms":`...)
	b = strconv.AppendFloat(b, float64(t.took.Microseconds())/1000, 'f', -1, 64)
	return append(b, '}')
}

func outcome(blocked, modified bool) string {
	switch {
	case blocked:
		return "blocked"
	case modified:
		return "modified"
	}
	return "passed"
}

func text(s string) abi.Raw  { return strictjson.AppendString(nil, s) }
func number(n int) abi.Raw   { return strconv.AppendInt(nil, int64(n), 10) }
func boolean(b bool) abi.Raw { return strconv.AppendBool(nil, b) }
