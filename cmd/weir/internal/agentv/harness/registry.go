package harness

import (
	"encoding/json"

	"weir/cmd/weir/internal/agentv/sandbox"
	"weir/cmd/weir/internal/agentv/scenario"
	"weir/host/fault"
)

// RegistryVariable is AgentV's environment variable with a JSON object that is
// merged into the registry.
const RegistryVariable = "AES_SHIM_RESOURCES_JSON"

// Extra joins what a run's environment is made of besides the scenario: the
// mappings of a routing manifest, under routing.mappings, and the object of
// [RegistryVariable]. Either may be empty.
func Extra(mappings []byte, variable string) ([]byte, error) {
	extra := map[string]any{}
	if mappings != nil {
		value, err := sandbox.Decode(mappings)
		if err != nil {
			return nil, fault.New(fault.Invalid, "routes: %w", err)
		}
		extra["routing"] = map[string]any{"mappings": value}
	}
	if variable != "" {
		value, err := sandbox.Decode([]byte(variable))
		object, ok := value.(map[string]any)
		if err != nil || !ok {
			return nil, fault.New(fault.Invalid, "environment %s: expected a JSON object", RegistryVariable)
		}
		merge(extra, object)
	}
	return json.Marshal(extra)
}

// Registry is everything that the environment of a run is made of: under
// simulators what the scenario declares of its world, and the extra object. It
// may hold secrets. AgentV's registry is its simulators' configuration; ours has
// the same purpose and other members.
func Registry(s *scenario.Scenario, extra []byte) ([]byte, error) {
	value, err := sandbox.Decode(s.Declared)
	if err != nil {
		return nil, fault.New(fault.Invalid, "environment: %w", err)
	}
	simulators, _ := value.(map[string]any)
	if s.ToolsSource != nil {
		if simulators["tools"], err = sandbox.Decode(s.ToolsSource); err != nil {
			return nil, fault.New(fault.Invalid, "environment: %w", err)
		}
	}
	registry := map[string]any{"simulators": simulators}
	more, err := sandbox.Decode(extra)
	object, ok := more.(map[string]any)
	if err != nil || !ok {
		return nil, fault.New(fault.Invalid, "environment: expected a JSON object")
	}
	merge(registry, object)
	return json.Marshal(registry)
}

// merge puts the members of an object into another; objects are merged, anything
// else is replaced.
func merge(into, from map[string]any) {
	for name, value := range from {
		inner, ok := value.(map[string]any)
		old, there := into[name].(map[string]any)
		if ok && there {
			merge(old, inner)
			continue
		}
		into[name] = value
	}
}
