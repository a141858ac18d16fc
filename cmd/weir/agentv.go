package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"

	"weir/cmd/weir/internal/agentv/agent"
	"weir/cmd/weir/internal/agentv/harness"
	"weir/cmd/weir/internal/agentv/route"
	"weir/cmd/weir/internal/agentv/scenario"
	"weir/host/fault"
)

// exitBroken is the exit code of a harness that could not do its work, so that a
// failure of the agent is told from one of the evaluation.
const exitBroken = 2

// agentvCommands are the harness side of the AgentV contract.
func agentvCommands() []command {
	return []command{
		{"agentv run", "--scenario FILE [--agent URL|tcp:HOST:PORT|unix:PATH|COMMAND] [--routes FILE] [--attempts N] [--out DIR] [--json]",
			"run an AgentV scenario against any agent and write a ledger; exit code 1 when the agent fails, 2 when the evaluation does",
			`weir agentv run --scenario own_edge_pass.json --agent "python3 agent.py"`, (*weir).agentvRun},
		{"agentv verify", "DIR|FILE [--scenario FILE] [--routes FILE] [--head DIGEST] [--json]",
			"recompute the hashes, the chain and the outcome of a ledger",
			"weir agentv verify runs/run-edge-1-20260101T120000Z-0a1b2c", (*weir).agentvVerify},
		{"agentv stdio", "[--config FILE] [--forget]", "answer AgentV's requests on stdin with action objects on stdout, a line each",
			`echo '{"task_description":"Hello"}' | weir agentv stdio`, (*weir).agentvStdio},
		{"agentv socket", "--listen tcp:HOST:PORT|unix:PATH [--config FILE]", "the same on a socket of this machine, until SIGTERM or Ctrl-C",
			"weir agentv socket --listen tcp:127.0.0.1:9000", (*weir).agentvSocket},
	}
}

// agentvFlags are what the command agentv run was asked for.
type agentvFlags struct {
	scenario, agent, routes, human string
	json                           bool
	opts                           harness.Options
}

// agentvRun runs a scenario against an agent.
func (w *weir) agentvRun(ctx context.Context, args []string) int {
	a, code, ok := w.agentvFlags(args)
	if !ok {
		return code
	}
	result, err := w.evaluate(ctx, a)
	if err != nil {
		w.refuse("weir agentv run", err)
		return exitBroken
	}
	if a.json {
		if code := w.printJSON(result); code != exitOK {
			return exitBroken
		}
	} else {
		w.printResult(result)
	}
	if !result.Passed {
		return exitFailed
	}
	return exitOK
}

func (w *weir) agentvFlags(args []string) (a agentvFlags, code int, ok bool) {
	f := w.flags("agentv run")
	f.StringVar(&a.scenario, "scenario", "", "the AES 1.4 scenario, a JSON file")
	f.StringVar(&a.agent, "agent", "", "a URL, tcp:HOST:PORT, unix:PATH, or a command; without it the routes and then the scenario say")
	f.StringVar(&a.routes, "routes", "", "a routing manifest: the scenario's capabilities name the agent in it")
	f.IntVar(&a.opts.Attempts, "attempts", 1, "how often, 1 to 50")
	f.Float64Var(&a.opts.PassRate, "pass-rate", 1, "the share of attempts that must succeed")
	f.StringVar(&a.opts.Out, "out", "runs", "the folder for ledgers; each run has its own in it")
	f.StringVar(&a.opts.AgentName, "agent-name", "", "the agent's name where its replies have none")
	f.Func("payload", "the form of requests: contract (default), or that of AgentV 1.4, 1.6 or 1.7", func(text string) error {
		a.opts.Payload = harness.Payload(text)
		return nil
	})
	f.DurationVar(&a.opts.Agent.Timeout, "timeout", 0, "the longest wait for one reply (30s)")
	f.IntVar(&a.opts.MaxTurns, "max-turns", 0, "turns of one node where the scenario does not say (20)")
	f.BoolVar(&a.opts.Agent.Persistent, "persistent", false, "keep one process or connection for an attempt, not one for each turn")
	f.StringVar(&a.human, "human", "", "who answers a pause: ask, approve, reject, auto or skip; default ask on a terminal, auto with CI=true, else skip")
	f.Func("skip-metric", "leave a metric out; may be repeated", func(text string) error {
		a.opts.Skip = append(a.opts.Skip, text)
		return nil
	})
	a.opts.Agent.Header = http.Header{}
	f.Func("header", "an HTTP header as NAME: VALUE, or @FILE with one a line; may be repeated", func(text string) error {
		return addHeaders(a.opts.Agent.Header, text)
	})
	f.BoolVar(&a.json, "json", false, "print the result as one JSON object")
	if _, code, ok := w.parse(f, args, 0); !ok {
		return a, code, false
	}
	return a, exitUsage, w.usable(f, &a)
}

// usable checks what the flags say together.
func (w *weir) usable(f *flag.FlagSet, a *agentvFlags) bool {
	if a.scenario == "" {
		fmt.Fprintf(w.stderr, "%s: expected --scenario with a file\n", f.Name())
		f.Usage()
		return false
	}
	human, err := w.humanFor(a.human)
	if err != nil {
		fmt.Fprintf(w.stderr, "%s: %v\n", f.Name(), err)
		return false
	}
	a.opts.Human = human
	if terminal(w.stderr) && !a.json {
		a.opts.Progress = func(p harness.Progress) { fmt.Fprintln(w.stderr, progress(p)) }
	}
	return true
}

func progress(p harness.Progress) string {
	if p.Node == "" {
		return fmt.Sprintf("attempt %d/%d  %s", p.Attempt, p.Attempts, p.What)
	}
	return fmt.Sprintf("attempt %d/%d  %s  turn %d  %s", p.Attempt, p.Attempts, printable(p.Node), p.Turn, p.What)
}

// addHeaders reads headers. A file keeps a credential off the command line, which
// others on the machine can read.
func addHeaders(into http.Header, text string) error {
	lines := []string{text}
	if file, ok := strings.CutPrefix(text, "@"); ok {
		data, err := os.ReadFile(file)
		if err != nil {
			return fault.New(fault.Invalid, "expected a readable file: %w", err)
		}
		lines = strings.Split(strings.TrimSpace(string(data)), "\n")
	}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t") {
			return fault.New(fault.Invalid, "expected NAME: VALUE")
		}
		into.Add(name, strings.TrimSpace(value))
	}
	return nil
}

func terminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// humanFor is who answers when the agent pauses; the words are AgentV's where it
// has some.
func (w *weir) humanFor(who string) (harness.Human, error) {
	if who == "" {
		who = "skip"
		if ci, _ := w.env("CI"); ci == "true" {
			who = "auto"
		} else if terminal(w.stdin) {
			who = "ask"
		}
	}
	says := func(format string) harness.Human {
		return func(_ context.Context, prompt string) (string, error) {
			return strings.ReplaceAll(format, "%", prompt), nil
		}
	}
	switch who {
	case "approve", "reject":
		return says(who), nil
	case "auto":
		return says("Auto-approved (CI-Override): %"), nil
	case "skip":
		return nil, nil
	case "ask":
		return w.ask(bufio.NewReader(w.stdin)), nil
	}
	return nil, fault.New(fault.Invalid, "expected --human with ask, approve, reject, auto or skip, got %q", who)
}

// ask reads the answer of whoever sits at the terminal.
func (w *weir) ask(in *bufio.Reader) harness.Human {
	return func(ctx context.Context, prompt string) (string, error) {
		fmt.Fprintf(w.stderr, "the agent asks: %+q\nanswer (exit ends the run): ", prompt)
		line := make(chan string, 1)
		go func() {
			text, _ := in.ReadString('\n')
			line <- strings.TrimSpace(text)
		}()
		select {
		case text := <-line:
			if text == "exit" || text == "" {
				return "", fault.New(fault.Denied, "nobody answered")
			}
			return text, nil
		case <-ctx.Done():
			return "", fault.New(fault.Unavailable, "the run was cancelled")
		}
	}
}

// evaluate joins scenario, routes and agent, and runs.
func (w *weir) evaluate(ctx context.Context, a agentvFlags) (*harness.Result, error) {
	s, err := scenario.Load(a.scenario)
	if err != nil {
		return nil, err
	}
	manifest, extra, err := w.environment(a.routes)
	if err != nil {
		return nil, err
	}
	found, source, err := route.Find(a.agent, manifest, s)
	if err != nil {
		return nil, err
	}
	if source == route.FromMetadata && len(a.opts.Agent.Header) > 0 {
		return nil, fault.New(fault.Denied, "--header: expected --agent or --routes as well, because a scenario may not choose who gets a credential")
	}
	address, err := agent.ParseAddress(found.Endpoint, found.Protocol)
	if err != nil {
		return nil, err
	}
	a.opts.Registry = extra
	return harness.Run(ctx, s, harness.Target{Address: address, Source: source, Template: found.Template}, a.opts)
}

// environment is what a run's environment is made of besides the scenario.
func (w *weir) environment(routes string) (*route.Manifest, []byte, error) {
	var manifest *route.Manifest
	var mappings []byte
	if routes != "" {
		var err error
		if manifest, err = route.Load(routes); err != nil {
			return nil, nil, err
		}
		mappings = manifest.Source
	}
	variable, _ := w.env(harness.RegistryVariable)
	extra, err := harness.Extra(mappings, variable)
	return manifest, extra, err
}
