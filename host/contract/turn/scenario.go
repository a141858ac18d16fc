package turn

import (
	"strings"

	"weir/abi/strictjson"
	"weir/host/dna"
	"weir/host/fault"
	"weir/host/run"
)

// ToolDNA is tool_dna_hash of the tools that an agent exposes.
func ToolDNA(tools []run.Tool) (string, error) {
	list := make([]dna.Tool, len(tools))
	for i, t := range tools {
		list[i] = dna.Tool{Name: t.Name, Description: t.Description, Parameters: t.Schema}
	}
	hash, err := dna.Exposed(list)
	if err != nil {
		return "", fault.New(fault.Invalid, "tools: %w", err)
	}
	return hash, nil
}

// ScenarioTools are the tools of an AES scenario (section 7). A scenario names
// parameters and their types and says of none that it is required; what the
// tools answer is left out: that is the caller's.
func ScenarioTools(scenario []byte) ([]run.Tool, error) {
	if err := strictjson.Valid(scenario); err != nil {
		return nil, fault.New(fault.Invalid, "scenario: expected JSON: %w", err)
	}
	raw := members(scenario)["tools"]
	if raw == nil {
		return nil, nil
	}
	d := strictjson.NewDecoder(raw)
	var tools []run.Tool
	err := d.Object(func(name string) error {
		raw, err := d.Raw()
		if err != nil {
			return err
		}
		schema, err := parameters(members(raw))
		if err != nil {
			return fault.New(fault.Invalid, "tool %s: %w", name, err)
		}
		description := textOf(members(raw)["description"])
		if description == "" {
			description = "The tool " + name + " of the scenario."
		}
		tools = append(tools, run.Tool{Name: strings.Clone(name), StepName: strings.Clone(name), Description: description, Schema: schema})
		return nil
	})
	if err != nil {
		return nil, fault.New(fault.Invalid, "scenario: tools: %w", err)
	}
	return tools, nil
}

// parameters makes a schema of a tool's parameters {name: type} or
// expected_params [name].
func parameters(tool map[string][]byte) ([]byte, error) {
	b := []byte(`{"type":"object","properties":{`)
	first := true
	add := func(name, kind string) {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = strictjson.AppendString(append(strictjson.AppendString(b, name), `:{"type":`...), kind)
		b = append(b, '}')
	}
	var err error
	switch d := strictjson.NewDecoder(tool["parameters"]); {
	case d.Kind() == strictjson.Object:
		err = d.Object(func(name string) error {
			raw, err := d.Raw()
			if err != nil {
				return err
			}
			kind := typeOf(raw)
			if kind == "" {
				return fault.New(fault.Invalid, "parameter %s: expected the name of a scalar type", name)
			}
			add(name, kind)
			return nil
		})
	case tool["expected_params"] != nil:
		for _, name := range elements(tool["expected_params"]) {
			add(textOf(name), "string")
		}
	}
	return append(b, "}}"...), err
}

// typeOf reads a parameter's type: a word, or an object that has one as type.
func typeOf(raw []byte) string {
	word := textOf(raw)
	if word == "" {
		word = textOf(members(raw)["type"])
	}
	switch strings.ToLower(word) {
	case "string", "str", "text", "date", "datetime":
		return "string"
	case "integer", "int":
		return "integer"
	case "number", "float", "double":
		return "number"
	case "boolean", "bool":
		return "boolean"
	}
	return ""
}
