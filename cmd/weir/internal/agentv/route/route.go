// Package route finds an agent by what a scenario needs: capabilities in a
// routing manifest, as AgentV wants it, so that scenarios name no addresses.
package route

import (
	"os"
	"strings"

	"weir/abi/strictjson"
	"weir/cmd/weir/internal/agentv/scenario"
	"weir/host/fault"
)

// maxManifest bounds a manifest, in bytes.
const maxManifest = 4 << 20

// A Manifest says where capabilities are found.
type Manifest struct {
	Source []byte // an object from capability to route
	routes map[string]Route
}

// A Route is where one agent is, and how it wants to be asked.
type Route struct {
	Protocol string // http, sse, local, socket; empty: the endpoint says
	Endpoint string
	// Template replaces the body of every request: the strings
	// {task_description} and {input_payload} in it stand for the task's text and
	// the node's payload. An object; nil when there is none.
	Template []byte
}

// Load reads a manifest: {"mappings": {CAPABILITY: ROUTE}} or the mappings alone.
// A route is {"protocol", "endpoint", "metadata": {"payload_template"}} or only
// the endpoint. An error of kind fault.Invalid says where what was expected.
func Load(path string) (*Manifest, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.New(fault.Invalid, "routes: expected a readable file: %w", err)
	}
	if info.Size() > maxManifest {
		return nil, fault.New(fault.Limit, "routes %s: expected at most %d bytes", path, maxManifest)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.New(fault.Invalid, "routes: expected a readable file: %w", err)
	}
	m, err := Parse(data)
	if err != nil {
		return nil, fault.New(fault.Invalid, "routes %s: %w", path, err)
	}
	return m, nil
}

// Parse reads a manifest.
func Parse(data []byte) (*Manifest, error) {
	if err := strictjson.Valid(data); err != nil {
		return nil, fault.New(fault.Invalid, "expected JSON: %w", err)
	}
	if inner := mappings(data); inner != nil {
		data = inner
	}
	m := &Manifest{Source: data, routes: make(map[string]Route)}
	d := strictjson.NewDecoder(data)
	err := d.Object(func(capability string) error {
		r, err := route(d)
		if err != nil {
			return fault.New(fault.Invalid, "mappings.%s: %w", capability, err)
		}
		m.routes[capability] = r
		return nil
	})
	if err != nil {
		return nil, fault.New(fault.Invalid, "%w", err)
	}
	return m, nil
}

// mappings is the member of that name, if it is an object.
func mappings(data []byte) (inner []byte) {
	d := strictjson.NewDecoder(data)
	if d.Kind() != strictjson.Object {
		return nil
	}
	// The text has been checked.
	_ = d.Object(func(name string) error {
		raw, err := d.Raw()
		if name == "mappings" && strictjson.NewDecoder(raw).Kind() == strictjson.Object {
			inner = raw
		}
		return err
	})
	return inner
}

func route(d *strictjson.Decoder) (r Route, err error) {
	if d.Kind() == strictjson.String {
		r.Endpoint, err = d.String()
		return r, err
	}
	err = d.Object(func(name string) (err error) {
		switch name {
		case "protocol":
			r.Protocol, err = d.String()
		case "endpoint":
			r.Endpoint, err = d.String()
		case "metadata":
			err = d.Object(func(name string) (err error) {
				if name != "payload_template" || d.Kind() != strictjson.Object {
					return d.Skip()
				}
				r.Template, err = d.Raw()
				return err
			})
		default:
			err = d.Skip()
		}
		return err
	})
	if err == nil && r.Endpoint == "" {
		err = strictjson.Missing("endpoint")
	}
	return r, err
}

// Where an endpoint was found.
const (
	FromFlag     = "flag"
	FromRoutes   = "routing_manifest"
	FromMetadata = "scenario_metadata"
)

// Find decides where the agent of a scenario is: what the command line says, else
// the first of its capabilities that the manifest knows, else metadata.agent. A
// scenario is data from somebody else, so it may not name a command to run.
func Find(flag string, m *Manifest, s *scenario.Scenario) (r Route, source string, err error) {
	if flag != "" {
		return Route{Endpoint: flag}, FromFlag, nil
	}
	if m != nil {
		for _, capability := range s.Capabilities {
			if r, ok := m.routes[capability]; ok {
				return r, FromRoutes, nil
			}
		}
	}
	if s.Agent.Endpoint == "" {
		return Route{}, "", fault.New(fault.NotFound, "agent: expected --agent, a route for one of the capabilities %q, or metadata.agent.endpoint in the scenario", s.Capabilities)
	}
	e := s.Agent.Endpoint
	if !strings.HasPrefix(e, "http://") && !strings.HasPrefix(e, "https://") || s.Agent.Protocol == "local" {
		return Route{}, "", fault.New(fault.Denied, "metadata.agent: expected a URL, because a scenario may not choose a command or a socket of this machine; name the agent with --agent or --routes")
	}
	return Route{Protocol: s.Agent.Protocol, Endpoint: e}, FromMetadata, nil
}
