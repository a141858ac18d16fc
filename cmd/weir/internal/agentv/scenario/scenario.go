// Package scenario reads scenarios of AgentV in the AES format, version 1.4.
package scenario

import (
	"fmt"
	"os"
	"regexp"

	"weir/abi/strictjson"
	"weir/cmd/weir/internal/agentv/schema"
	"weir/host/fault"
)

// MaxSize bounds a scenario file, in bytes.
const MaxSize = 16 << 20

// A Scenario is a graph of tasks with the world in which an agent does them.
type Scenario struct {
	ID, Name    string
	Source      []byte // the file as it is
	Workflow    []byte // its member workflow as it stands
	ToolsSource []byte // its member tools as it stands; nil when there is none
	Declared    []byte // its policies, initial_state, enabled_shims and agent_topology, as one object

	Nodes        []Node // in the order of execution
	Tools        map[string]Tool
	Policies     map[string]Policy
	InitialState []byte // an object
	Topology     map[string]Access
	Shims        []string

	MaxTurns     int // 0: not said
	Capabilities []string
	Agent        Endpoint // metadata.agent
	Metrics      []Criterion
	Traceparent  string // what a trace of the run shall continue; may be empty

	// Notices say what the file asks for and this harness does not do.
	Notices []string
}

// A Node is one task.
type Node struct {
	ID, Task      string
	RequiredTools []string
	ToolsDeclared bool // required_tools is there, if only to say that none is
	Changes       []Change
	Criteria      []Criterion
	Outcome       []Assertion
	Hygiene       []Rule
	Keywords      []string
	InputPayload  []byte // an object; nil when there is none
	ShouldRefuse  bool
}

// A Tool is what the sandbox knows about one tool.
type Tool struct {
	Output  []byte // any value; nil when none is declared
	Changes []Change
}

// A Policy limits a tool.
type Policy struct {
	Limit    float64 // of the parameter amount
	Text     string  // the limit as the file has it
	HasLimit bool
}

// Access is which paths of the state an agent may touch.
type Access struct {
	Reads, Writes []string
	WritesSaid    bool
}

// A Change is a value at a path of the state.
type Change struct {
	Path  string
	Value []byte
}

// A Criterion is a metric and what it must reach.
type Criterion struct {
	Metric    string
	Threshold float64
}

// The modes of an assertion that the schema allows.
const (
	Exact     = "exact"
	Regex     = "regex"
	Tolerance = "numerical_tolerance"
)

// An Assertion is one part of an expected outcome.
type Assertion struct {
	Target    string // message, state, shim:<id>[.path]
	Property  string
	Expected  []byte
	Mode      string
	Pattern   *regexp.Regexp // in mode regex
	Number    float64        // in mode numerical_tolerance
	Tolerance float64
}

// A Rule is an assertion about the state before a node begins.
type Rule struct {
	Path, Op string
	Expected []byte // nil when there is none
}

// An Endpoint is where an agent is.
type Endpoint struct {
	Protocol, Endpoint string
}

// Load reads a scenario from a file.
func Load(path string) (*Scenario, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.New(fault.Invalid, "scenario: expected a readable file: %w", err)
	}
	if info.Size() > MaxSize {
		return nil, fault.New(fault.Limit, "scenario %s: expected at most %d bytes, got %d", path, MaxSize, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.New(fault.Invalid, "scenario: expected a readable file: %w", err)
	}
	s, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", path, err)
	}
	return s, nil
}

// Parse reads a scenario. An error says at which path of the file what was
// expected; the kind is fault.Invalid.
func Parse(data []byte) (*Scenario, error) {
	p, err := NewParser()
	if err != nil {
		return nil, err
	}
	return p.Parse(data)
}

// A Parser reads many scenarios; it has the schema at hand. It is safe for
// concurrent use.
type Parser struct {
	rules *schema.Schema
}

// NewParser compiles the schema.
func NewParser() (*Parser, error) {
	rules, err := schema.Scenario()
	return &Parser{rules}, err
}

// Parse is the function of that name.
func (p *Parser) Parse(data []byte) (*Scenario, error) {
	if err := strictjson.Valid(data); err != nil {
		return nil, fault.New(fault.Invalid, "expected JSON: %w", err)
	}
	if err := p.rules.Check(data); err != nil {
		return nil, err
	}
	s := &Scenario{Source: data, InitialState: []byte("{}")}
	if err := s.decode(data); err != nil {
		return nil, fault.New(fault.Invalid, "%w", err)
	}
	return s, nil
}
