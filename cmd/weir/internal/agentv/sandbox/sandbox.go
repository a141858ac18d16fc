// Package sandbox executes the tools of a scenario. Nothing happens outside it:
// a tool answers what the scenario declares, changes the scenario's state as it
// declares, and is held to its limits, so two runs with the same calls are the
// same.
package sandbox

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"weir/abi/strictjson"
	"weir/cmd/weir/internal/agentv/scenario"
)

// A Sandbox is the world of one attempt. It is not safe for concurrent use.
type Sandbox struct {
	scenario *scenario.Scenario
	access   scenario.Access
	state    *State
	calls    []Call
}

// A Call is what came of one call of a tool.
type Call struct {
	Tool      string
	Params    []byte // an object
	Result    []byte // any value
	Violation bool   // refused by a limit
	Denied    bool   // refused because the agent may not write what the tool changes
	Changed   bool   // the state changed
}

// New returns the world as the scenario begins. The scenario's topology counts
// if it names the agent.
func New(s *scenario.Scenario, agent string) (*Sandbox, error) {
	state, err := NewState(s.InitialState)
	if err != nil {
		return nil, err
	}
	return &Sandbox{scenario: s, access: s.Topology[agent], state: state}, nil
}

// State is the state as it is now. It belongs to the sandbox.
func (s *Sandbox) State() *State { return s.state }

// Calls are all calls so far. The slice belongs to the sandbox.
func (s *Sandbox) Calls() []Call { return s.calls }

// Used names the tools that were called so far, each once, in order. Refused
// calls count.
func (s *Sandbox) Used() []string {
	var out []string
	for _, c := range s.calls {
		out = append(out, c.Tool)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Call executes a tool. A tool that nobody declared succeeds, as in AgentV.
func (s *Sandbox) Call(tool string, params []byte) Call {
	c := Call{Tool: tool, Params: params}
	declared := s.scenario.Tools[tool]
	if amount, over := s.over(tool, params); over {
		c.Violation = true
		c.Result = object("status", "policy_violation", "violation", "Amount "+amount+" exceeds limit of "+s.scenario.Policies[tool].Text)
	} else if path, denied := s.denied(declared); denied {
		c.Denied = true
		c.Result = object("status", "error", "message", "Agent may not write "+path)
	} else {
		c.Changed = s.apply(declared.Changes)
		if c.Result = declared.Output; c.Result == nil {
			c.Result = object("status", "success", "message", "Executed "+tool)
		}
	}
	s.calls = append(s.calls, c)
	return c
}

// over tells whether the parameter amount is above the tool's limit, and how it
// was written.
func (s *Sandbox) over(tool string, params []byte) (amount string, over bool) {
	policy := s.scenario.Policies[tool]
	if !policy.HasLimit {
		return "", false
	}
	value, err := Decode(params)
	if err != nil {
		return "", false
	}
	found, _ := Lookup(value, "amount")
	switch v := found.(type) {
	case json.Number:
		amount = v.String()
	case string:
		amount = strings.TrimSpace(v)
	default:
		return "", false
	}
	f, err := strconv.ParseFloat(amount, 64)
	// A number too large for a float64 is above every limit.
	return amount, f > policy.Limit && (err == nil || f > 0)
}

// denied finds a path that a tool changes and the agent may not write. A path
// that may be written covers those below it; * is every path.
func (s *Sandbox) denied(t scenario.Tool) (string, bool) {
	if !s.access.WritesSaid {
		return "", false
	}
	for _, c := range t.Changes {
		if !slices.ContainsFunc(s.access.Writes, func(w string) bool {
			return w == "*" || w == c.Path || strings.HasPrefix(c.Path, w+".")
		}) {
			return c.Path, true
		}
	}
	return "", false
}

func (s *Sandbox) apply(changes []scenario.Change) (changed bool) {
	for _, c := range changes {
		value, err := Decode(c.Value)
		if err != nil {
			continue // the loader has read it as JSON
		}
		before, ok := s.state.Lookup(c.Path)
		if ok && Equal(before, value) {
			continue
		}
		s.state.Set(c.Path, value)
		changed = true
	}
	return changed
}

// object writes names and strings.
func object(pairs ...string) []byte {
	b := []byte{'{'}
	for i := 0; i < len(pairs); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strictjson.AppendString(b, pairs[i]), ':')
		b = strictjson.AppendString(b, pairs[i+1])
	}
	return append(b, '}')
}
