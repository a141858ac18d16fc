package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"weir/abi/strictjson"
	"weir/host/fault"
)

// The schema has been checked, so what is decoded here has the types that it
// says; errors are about meaning.

func (s *Scenario) decode(data []byte) error {
	d := strictjson.NewDecoder(data)
	declared := []byte{'{'}
	keep := func(name string) error {
		raw, err := d.Raw()
		if len(declared) > 1 {
			declared = append(declared, ',')
		}
		declared = append(append(strictjson.AppendString(declared, name), ':'), raw...)
		if err != nil {
			return err
		}
		return s.world(name, raw)
	}
	var edges []edge
	err := d.Object(func(name string) (err error) {
		switch name {
		case "metadata":
			err = s.metadata(d)
		case "workflow":
			edges, err = s.workflow(d)
		case "evaluation":
			err = s.evaluation(d)
		case "tools":
			err = s.tools(d)
		case "policies", "initial_state", "enabled_shims", "agent_topology":
			err = keep(name)
		case "max_turns":
			s.MaxTurns, err = integer(d)
		case "capabilities":
			s.Capabilities, err = list(d)
		case "span_context":
			err = member(d, "traceparent", &s.Traceparent)
		default:
			err = d.Skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	s.Declared = append(declared, '}')
	if s.Nodes, err = order(s.Nodes, edges); err != nil {
		return err
	}
	s.notice()
	return nil
}

func (s *Scenario) metadata(d *strictjson.Decoder) error {
	return d.Object(func(name string) (err error) {
		switch name {
		case "id":
			s.ID, err = d.String()
		case "name":
			s.Name, err = d.String()
		case "capabilities":
			var more []string
			more, err = list(d)
			s.Capabilities = append(s.Capabilities, more...)
		case "traceparent":
			s.Traceparent, err = d.String()
		case "policies", "agent_topology":
			var raw []byte
			if raw, err = d.Raw(); err == nil {
				err = s.world(name, raw)
			}
		case "agent":
			err = d.Object(func(name string) (err error) {
				switch name {
				case "protocol":
					s.Agent.Protocol, err = d.String()
				case "endpoint":
					s.Agent.Endpoint, err = d.String()
				default:
					err = d.Skip()
				}
				return err
			})
		default:
			err = d.Skip()
		}
		return err
	})
}

// world reads what the sandbox is made of. The root and metadata may both have
// policies and a topology; for one name the later in the file counts.
func (s *Scenario) world(name string, raw []byte) error {
	d := strictjson.NewDecoder(raw)
	switch name {
	case "initial_state":
		s.InitialState = raw
	case "enabled_shims":
		var err error
		s.Shims, err = list(d)
		return err
	case "policies":
		if s.Policies == nil {
			s.Policies = make(map[string]Policy)
		}
		return d.Object(func(tool string) error { return s.policy(d, tool) })
	case "agent_topology":
		if s.Topology == nil {
			s.Topology = make(map[string]Access)
		}
		return d.Object(func(agent string) error { return s.access(d, agent) })
	}
	return nil
}

// policy reads one policy. Those that are no object, or have no limit, are
// prose for people.
func (s *Scenario) policy(d *strictjson.Decoder, tool string) error {
	if d.Kind() != strictjson.Object {
		return d.Skip()
	}
	var p Policy
	err := d.Object(func(name string) error {
		if name != "max_limit" || d.Kind() != strictjson.Number {
			return d.Skip()
		}
		raw, err := d.Raw()
		if err != nil {
			return err
		}
		p.Text, p.HasLimit = string(raw), true
		if p.Limit, err = strconv.ParseFloat(p.Text, 64); err != nil {
			return fault.New(fault.Invalid, "policies.%s.max_limit: expected a number that fits a float64", tool)
		}
		return nil
	})
	s.Policies[tool] = p
	return err
}

func (s *Scenario) access(d *strictjson.Decoder, agent string) error {
	var a Access
	err := d.Object(func(name string) (err error) {
		switch name {
		case "reads":
			a.Reads, err = list(d)
		case "writes":
			a.WritesSaid = true
			a.Writes, err = list(d)
		default:
			err = d.Skip()
		}
		return err
	})
	s.Topology[agent] = a
	return err
}

func (s *Scenario) tools(d *strictjson.Decoder) error {
	raw, err := d.Raw()
	if err != nil {
		return err
	}
	s.ToolsSource, s.Tools = raw, make(map[string]Tool)
	d = strictjson.NewDecoder(raw)
	return d.Object(func(tool string) error {
		var t Tool
		err := d.Object(func(name string) (err error) {
			switch name {
			case "output":
				t.Output, err = d.Raw()
			case "state_changes":
				t.Changes, err = changes(d)
			default:
				err = d.Skip()
			}
			return err
		})
		s.Tools[tool] = t
		return err
	})
}

func (s *Scenario) evaluation(d *strictjson.Decoder) error {
	return d.Object(func(name string) (err error) {
		switch name {
		case "metrics":
			s.Metrics, err = criteria(d)
		case "consensus":
			s.Notices = append(s.Notices, "evaluation.consensus asks for judges; this harness asks none and decides by outcomes and metrics")
			err = d.Skip()
		default:
			err = d.Skip()
		}
		return err
	})
}

func (s *Scenario) workflow(d *strictjson.Decoder) (edges []edge, err error) {
	if s.Workflow, err = d.Raw(); err != nil {
		return nil, err
	}
	d = strictjson.NewDecoder(s.Workflow)
	err = d.Object(func(name string) error {
		switch name {
		case "nodes":
			return d.Array(func() error {
				n, err := node(d)
				if err != nil {
					return fmt.Errorf("workflow.nodes[%d].%w", len(s.Nodes), err)
				}
				s.Nodes = append(s.Nodes, n)
				return nil
			})
		case "edges":
			return d.Array(func() error {
				var e edge
				err := d.Object(func(name string) (err error) {
					switch name {
					case "from":
						e.from, err = d.String()
					case "to":
						e.to, err = d.String()
					default:
						err = d.Skip()
					}
					return err
				})
				edges = append(edges, e)
				return err
			})
		}
		return d.Skip()
	})
	return edges, err
}

// notice says what of the file has no effect here, and what upstream would make
// of it that this harness does not.
func (s *Scenario) notice() {
	for _, shim := range s.Shims {
		s.Notices = append(s.Notices, fmt.Sprintf("enabled_shims: there is no simulator %q here; its tools answer as declared in tools, or with a general success", shim))
	}
	var bare []string
	for _, n := range s.Nodes {
		if len(n.Criteria) == 0 {
			bare = append(bare, n.ID)
		}
	}
	if len(bare) > 0 {
		s.Notices = append(s.Notices, fmt.Sprintf("without success_criteria, and so never passed in AgentV's pass_at_k, but judged by their outcomes here: %s", strings.Join(bare, ", ")))
	}
}

func list(d *strictjson.Decoder) (out []string, err error) {
	err = d.Array(func() error {
		s, err := d.String()
		out = append(out, s)
		return err
	})
	return out, err
}

// member reads one string of an object and skips the rest of it.
func member(d *strictjson.Decoder, want string, into *string) error {
	return d.Object(func(name string) (err error) {
		if name == want && d.Kind() == strictjson.String {
			*into, err = d.String()
			return err
		}
		return d.Skip()
	})
}

// integer reads what JSON Schema calls an integer, which 20.0 is as well.
func integer(d *strictjson.Decoder) (int, error) {
	f, err := d.Float()
	return int(f), err
}
