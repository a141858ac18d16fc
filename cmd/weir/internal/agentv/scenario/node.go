package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/abi/strictjson"
)

func node(d *strictjson.Decoder) (n Node, err error) {
	err = d.Object(func(name string) (err error) {
		switch name {
		case "id":
			n.ID, err = d.String()
		case "task_description":
			n.Task, err = d.String()
		case "required_tools":
			n.ToolsDeclared = true
			n.RequiredTools, err = list(d)
		case "expected_state_changes":
			n.Changes, err = changes(d)
		case "success_criteria":
			n.Criteria, err = criteria(d)
		case "expected_outcome":
			n.Outcome, err = assertions(d)
		case "state_hygiene":
			n.Hygiene, err = hygiene(d)
		case "keywords":
			n.Keywords, err = list(d)
		case "input_payload":
			n.InputPayload, err = d.Raw()
		case "should_refuse":
			n.ShouldRefuse, err = d.Bool()
		default:
			err = d.Skip()
		}
		return err
	})
	return n, err
}

func changes(d *strictjson.Decoder) (out []Change, err error) {
	err = d.Array(func() error {
		var c Change
		err := d.Object(func(name string) (err error) {
			switch name {
			case "path":
				c.Path, err = d.String()
			case "value", "expected":
				c.Value, err = d.Raw()
			default:
				err = d.Skip()
			}
			return err
		})
		out = append(out, c)
		return err
	})
	return out, err
}

// criteria reads metrics. A plain name, and one without a threshold, must reach 1.
func criteria(d *strictjson.Decoder) (out []Criterion, err error) {
	err = d.Array(func() error {
		c := Criterion{Threshold: 1}
		if d.Kind() == strictjson.String {
			var err error
			c.Metric, err = d.String()
			out = append(out, c)
			return err
		}
		err := d.Object(func(name string) (err error) {
			switch name {
			case "metric":
				c.Metric, err = d.String()
			case "threshold":
				c.Threshold, err = d.Float()
			default:
				err = d.Skip()
			}
			return err
		})
		out = append(out, c)
		return err
	})
	return out, err
}

func assertions(d *strictjson.Decoder) (out []Assertion, err error) {
	err = d.Array(func() error {
		// AgentV does not say how near is near enough; a hundredth is our answer.
		a := Assertion{Mode: Exact, Tolerance: 0.01}
		err := d.Object(func(name string) (err error) {
			switch name {
			case "target":
				a.Target, err = d.String()
			case "property":
				a.Property, err = d.String()
			case "expected":
				a.Expected, err = d.Raw()
			case "mode":
				a.Mode, err = d.String()
			case "tolerance":
				a.Tolerance, err = d.Float()
			default:
				err = d.Skip()
			}
			return err
		})
		if err == nil {
			err = a.prepare()
		}
		if err != nil {
			return fmt.Errorf("expected_outcome[%d].%w", len(out), err)
		}
		out = append(out, a)
		return nil
	})
	return out, err
}

func (a *Assertion) prepare() (err error) {
	if a.Target != "message" && a.Target != "state" && !strings.HasPrefix(a.Target, "shim:") {
		return fmt.Errorf("target: expected message, state or shim:ID, got %q", a.Target)
	}
	d := strictjson.NewDecoder(a.Expected)
	switch a.Mode {
	case Regex:
		text, err := d.String()
		if err != nil {
			return fmt.Errorf("expected: expected a regular expression: %w", err)
		}
		// Python's re has look-around and back references, which this engine
		// refuses: better at the start than as a wrong verdict.
		if a.Pattern, err = regexp.Compile(text); err != nil {
			return fmt.Errorf("expected: expected a regular expression of RE2: %w", err)
		}
	case Tolerance:
		if a.Number, err = number(a.Expected); err != nil {
			return fmt.Errorf("expected: expected a number: %w", err)
		}
	}
	return nil
}

// number reads a number, or a string that holds one.
func number(raw []byte) (float64, error) {
	d := strictjson.NewDecoder(raw)
	if d.Kind() != strictjson.String {
		return d.Float()
	}
	text, err := d.String()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(text), 64)
}

// Ops are the operators of a rule of state_hygiene; AgentV's page does not list
// any.
func Ops() []string {
	return []string{"==", "!=", "<", "<=", ">", ">=", "eq", "ne", "lt", "le", "gt", "ge", "equals", "not_equals", "contains", "exists", "not_exists"}
}

func hygiene(d *strictjson.Decoder) (out []Rule, err error) {
	err = d.Object(func(name string) error {
		if name != "rules" {
			return d.Skip()
		}
		return d.Array(func() error {
			var r Rule
			err := d.Object(func(name string) (err error) {
				switch name {
				case "path":
					r.Path, err = d.String()
				case "op":
					r.Op, err = d.String()
				case "expected":
					r.Expected, err = d.Raw()
				default:
					err = d.Skip()
				}
				return err
			})
			if err == nil && !slices.Contains(Ops(), r.Op) {
				err = fmt.Errorf("state_hygiene.rules[%d].op: expected one of %s, got %q", len(out), strings.Join(Ops(), " "), r.Op)
			}
			out = append(out, r)
			return err
		})
	})
	return out, err
}
