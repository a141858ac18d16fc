// Package harness runs scenarios: it gives an agent one task after another,
// executes the tools that it asks for, and writes down what happened and what it
// was worth.
package harness

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"weir/cmd/weir/internal/agentv/agent"
	"weir/cmd/weir/internal/agentv/judge"
	"weir/cmd/weir/internal/agentv/ledger"
	"weir/cmd/weir/internal/agentv/scenario"
	"weir/host/dna"
	"weir/host/fault"
)

// MaxAttempts is AgentV's bound for one run.
const MaxAttempts = 50

// ScenarioName is the file beside a ledger that holds the scenario as it was.
const ScenarioName = "scenario_original.json"

// A Target is the agent of a run.
type Target struct {
	Address  agent.Address
	Source   string // where the address was found
	Template []byte // replaces the body of requests; nil for none
}

// A Human answers when an agent pauses. The context ends with the run.
type Human func(ctx context.Context, prompt string) (string, error)

// Options of a run. The zero value is useful.
type Options struct {
	// Attempts is how often the scenario is run; default 1, at most 50.
	Attempts int
	// PassRate is the share of attempts that must succeed for the run to pass;
	// default 1, all of them.
	PassRate float64
	// Out is the folder in which each run gets one of its own; default "runs".
	Out string
	// Payload is the form of requests; default Contract.
	Payload Payload
	// MaxTurns bounds the turns of a node where the scenario does not; default 20.
	MaxTurns int
	// AgentName names the agent where its replies do not. An agent_topology of the
	// scenario counts if it has this name.
	AgentName string
	// Human answers pauses; default: nobody does, in AgentV's words.
	Human Human
	// Registry is the environment besides the scenario's own, see [Registry].
	Registry []byte
	// Skip are metrics that are left out.
	Skip []string
	// Agent says how the agent is driven.
	Agent agent.Options
	// Poll is the wait before an agent that is processing is asked again, twice as
	// long each time up to eight times; default 250 ms.
	Poll time.Duration
	// Progress is told what happens, if it is there.
	Progress func(Progress)
}

// Progress is one thing that happened.
type Progress struct {
	Attempt, Attempts int
	Node              string
	Turn              int
	What              string
}

func (o Options) withDefaults() (Options, error) {
	if o.Attempts == 0 {
		o.Attempts = 1
	}
	if o.Attempts < 1 || o.Attempts > MaxAttempts {
		return o, fault.New(fault.Invalid, "attempts: expected 1 to %d, got %d", MaxAttempts, o.Attempts)
	}
	if o.PassRate == 0 {
		o.PassRate = 1
	}
	if !(o.PassRate > 0 && o.PassRate <= 1) {
		return o, fault.New(fault.Invalid, "pass rate: expected more than 0 and at most 1, got %v", o.PassRate)
	}
	if o.Out == "" {
		o.Out = "runs"
	}
	if o.Payload == "" {
		o.Payload = Contract
	}
	if !o.Payload.valid() {
		return o, fault.New(fault.Invalid, "payload: expected %s, got %q", strings.Join(Payloads(), ", "), o.Payload)
	}
	if o.MaxTurns <= 0 {
		o.MaxTurns = 20
	}
	if o.Human == nil {
		o.Human = func(_ context.Context, prompt string) (string, error) {
			return "Skipped (non-interactive, no TTY): " + prompt, nil
		}
	}
	if o.Poll <= 0 {
		o.Poll = 250 * time.Millisecond
	}
	if o.Registry == nil {
		o.Registry = []byte("{}")
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	return o, nil
}

// run is one run of a scenario.
type run struct {
	scenario *scenario.Scenario
	target   Target
	opts     Options
	ledger   *ledger.Writer
	result   *Result
	made     map[string][]string // by node: what each attempt called
	waited   time.Duration       // for answers
	asked    int
}

// Run runs a scenario against an agent. What the agent does wrong is in the
// result and in the ledger; an error means that the harness itself could not do
// its work.
func Run(ctx context.Context, s *scenario.Scenario, target Target, opts Options) (*Result, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	notices, err := judge.Check(s, opts.Skip)
	if err != nil {
		return nil, err
	}
	hashes, err := digest(s, opts.Registry)
	if err != nil {
		return nil, err
	}
	opts.Agent.Newline = opts.Payload == Contract
	id := runID(s.ID, time.Now())
	dir, err := folder(opts.Out, id, s.Source)
	if err != nil {
		return nil, err
	}
	log, err := ledger.Create(dir, id, time.Now)
	if err != nil {
		return nil, err
	}
	r := &run{scenario: s, target: target, opts: opts, ledger: log, made: make(map[string][]string), result: &Result{
		RunID: id, Scenario: s.ID, ScenarioName: s.Name, Agent: target.Address.String(), Protocol: target.Address.Protocol,
		AgentName: opts.AgentName, Attempts: opts.Attempts, Hashes: hashes.Hashes, Ledger: filepath.Join(dir, ledger.Name),
		Notices: append(append([]string{}, s.Notices...), notices...),
	}}
	if r.result.AgentName == "" {
		r.result.AgentName = r.result.Agent
	}
	r.start(hashes.snapshot)
	err = r.attempts(ctx)
	r.end(ctx)
	r.result.Head = log.Head()
	if errLog := log.Close(); err == nil {
		err = errLog
	}
	if err != nil {
		return nil, err
	}
	return r.result, nil
}

var unsafe = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// runID names a run after its scenario; it is a folder's name as well.
func runID(id string, now time.Time) string {
	id = strings.Trim(unsafe.ReplaceAllString(id, "-"), ".-")
	return "run-" + id[:min(len(id), 64)] + now.UTC().Format("-20060102T150405Z-") + random(3)
}

// random is n random bytes in hexadecimal digits.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// folder makes the run's folder and puts the scenario into it. Others on the
// machine may not read it: it holds what the agent said.
func folder(out, id string, source []byte) (string, error) {
	dir := filepath.Join(out, id)
	err := os.MkdirAll(out, 0o755)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, ScenarioName), source, 0o600)
	}
	if err != nil {
		return "", fault.New(fault.Unavailable, "out: expected a folder to write to: %w", err)
	}
	return dir, nil
}

type digests struct {
	Hashes
	snapshot []byte
}

// digest computes what ties the ledger to what was run.
func digest(s *scenario.Scenario, more []byte) (d digests, err error) {
	registry, err := Registry(s, more)
	if err != nil {
		return d, err
	}
	if d.Topology, err = dna.Topology(s.Workflow); err != nil {
		return d, fault.New(fault.Invalid, "workflow: %w", err)
	}
	if d.Tools, err = dna.Tools(s.ToolsSource); err != nil {
		return d, fault.New(fault.Invalid, "tools: %w", err)
	}
	if d.Provisioning, err = dna.Provisioning(registry); err != nil {
		return d, fault.New(fault.Invalid, "environment: %w", err)
	}
	d.Fingerprint = dna.Fingerprint(d.Topology, d.Tools, d.Provisioning)
	d.snapshot, _, err = dna.Snapshot(registry)
	return d, err
}

func (r *run) attempts(ctx context.Context) error {
	for n := 1; n <= r.opts.Attempts && ctx.Err() == nil; n++ {
		a, err := r.attempt(ctx, n)
		if err != nil {
			return err
		}
		r.result.Tries = append(r.result.Tries, a)
		if a.Success {
			r.result.Successful++
		}
	}
	return nil
}
