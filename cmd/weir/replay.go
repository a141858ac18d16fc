package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"weir/cmd/weir/internal/replay"
	"weir/host"
	"weir/host/admin"
	"weir/host/config"
	"weir/host/fault"
	"weir/host/run"
	folded "weir/host/run/replay"
)

func replayCommands() []command {
	return []command{
		{"replay", "[RUN… | --since 24h] [--with FILE] [--plugin NAME=FILE] [--prompt NAME=FILE] [--config FILE] [--gate RULES] [--report FILE.html] [--json]",
			"fold recorded runs through another policy and say what it would have done; exit code 1 when a gate is not passed",
			`weir replay --since 24h --with new/agent.toml --gate "block->allow=0,allow->block<=0.5%" --report replay.html`, (*weir).replay},
	}
}

// named collects NAME=FILE.
type named map[string]string

func (n named) String() string { return strings.Join(slices.Sorted(maps.Keys(n)), ",") }

func (n named) Set(text string) error {
	name, file, ok := strings.Cut(text, "=")
	if !ok || name == "" || file == "" {
		return fmt.Errorf("expected NAME=FILE")
	}
	n[name] = file
	return nil
}

// replayArgs are the command line of a replay.
type replayArgs struct {
	config, with, gate, report string
	since                      time.Duration
	plugins, prompts           named
	json                       bool
	runs                       []string
	rules                      []folded.Rule
}

func (w *weir) replayFlags(f *flag.FlagSet, args []string) (a *replayArgs, code int, ok bool) {
	a = &replayArgs{plugins: named{}, prompts: named{}}
	f.StringVar(&a.config, "config", "", "agent.toml that names the host and its store; wins over AGENT_CONFIG_PATH")
	f.StringVar(&a.with, "with", "", "agent.toml to try; default the one of --config")
	f.Var(a.plugins, "plugin", "NAME=FILE, a module to try in place of the configured one")
	f.Var(a.prompts, "prompt", "NAME=FILE, a prompt to try in place of the configured one")
	f.DurationVar(&a.since, "since", 0, "replay the runs that began in this last while; default 24h where no run is named")
	f.StringVar(&a.gate, "gate", "", "rules such as block->allow=0,allow->block<=0.5%; kinds: "+strings.Join(folded.Kinds(), ", ")+", changed, unanswerable")
	f.StringVar(&a.report, "report", "", "write a page for a reviewer to this file")
	f.BoolVar(&a.json, "json", false, "print the summary as one JSON object")
	if a.runs, code, ok = w.parse(f, args, several); !ok {
		return nil, code, false
	}
	var err error
	if a.rules, err = folded.ParseGate(a.gate); err == nil && len(a.runs) > 0 && a.since != 0 {
		err = fault.New(fault.Invalid, "expected names of runs, or --since")
	}
	if err == nil && a.since < 0 {
		err = fault.New(fault.Invalid, "--since: expected a positive duration")
	}
	if err != nil {
		fmt.Fprintf(w.stderr, "weir replay: %v\n", err)
		return nil, exitUsage, false
	}
	if len(a.runs) == 0 && a.since == 0 {
		a.since = 24 * time.Hour
	}
	return a, exitOK, true
}

func (w *weir) replay(ctx context.Context, args []string) int {
	a, code, ok := w.replayFlags(w.flags("replay"), args)
	if !ok {
		return code
	}
	summary, err := w.fold(ctx, a)
	if err != nil {
		return w.refuse("weir replay", err)
	}
	if a.report != "" {
		if err := writeReport(a, summary); err != nil {
			return w.refuse("weir replay", err)
		}
	}
	if a.json {
		if code := w.printJSON(summary); code != exitOK {
			return code
		}
	} else {
		w.printReplay(summary)
	}
	if !summary.Passed() {
		fmt.Fprintf(w.stderr, "weir replay: the gate is not passed: %s\n", summary.Failed())
		return exitFailed
	}
	return exitOK
}

// fold opens the recordings and what is tried, and folds the one through the
// other.
func (w *weir) fold(ctx context.Context, a *replayArgs) (summary *folded.Summary, err error) {
	cfg, source, err := w.recordings(ctx, a.config)
	if err != nil {
		return nil, err
	}
	defer source.close()
	if a.runs == nil {
		if a.runs, err = source.list(ctx, a.since); err != nil {
			return nil, err
		}
	}
	path := a.with
	if path == "" {
		path = cfg.Path
	}
	trial, err := host.OpenTrial(ctx, host.TrialOptions{Options: host.Options{ConfigPath: path, Env: w.env},
		Plugins: a.plugins, Prompts: a.prompts})
	if err != nil {
		return nil, err
	}
	defer trial.Close(context.WithoutCancel(ctx))
	return trial.Replay(ctx, len(a.runs), runtime.GOMAXPROCS(0), func(ctx context.Context, i int) (*run.Recorded, error) {
		report, err := source.log(ctx, a.runs[i])
		if err != nil {
			return nil, err
		}
		return run.ReadRecorded(report)
	}, a.rules)
}

// recordings is where logs come from: a running host, or its store.
type recordings struct {
	list  func(ctx context.Context, since time.Duration) ([]string, error)
	log   func(ctx context.Context, id string) (*run.Report, error)
	close func() error
}

// recordings opens those of the host that an agent.toml names.
func (w *weir) recordings(ctx context.Context, path string) (*config.Config, *recordings, error) {
	cfg, err := config.Load(config.Source{Path: path, Env: w.env, Keyless: true})
	if err != nil {
		return nil, nil, err
	}
	source, err := w.recordingsOf(ctx, cfg)
	return cfg, source, err
}

func (w *weir) recordingsOf(ctx context.Context, cfg *config.Config) (*recordings, error) {
	if cfg.Admin.APIKey.Set() {
		network, address := cfg.Admin.Network()
		client := admin.NewClient(network, address, cfg.Admin.APIKey.Reveal())
		_, err := client.Status(ctx)
		switch {
		case err == nil:
			return fromHost(client), nil
		case fault.Of(err) != fault.Unavailable: // no host runs
			return nil, err
		}
	}
	runs, err := host.OpenRuns(ctx, cfg)
	if err != nil {
		return nil, held(err)
	}
	list := func(ctx context.Context, since time.Duration) ([]string, error) {
		listed, err := runs.List(ctx, time.Now().Add(-since), 0)
		return names(listed), err
	}
	return &recordings{list, runs.Inspect, runs.Close}, nil
}

func fromHost(client *admin.Client) *recordings {
	list := func(ctx context.Context, since time.Duration) ([]string, error) {
		reply, err := client.Logs(ctx, since, 0)
		if err == nil && reply.Error != "" {
			err = fault.New(fault.Unavailable, "%s", reply.Error)
		}
		if err != nil {
			return nil, err
		}
		var listed []run.Listed
		err = json.Unmarshal(reply.Logs, &listed)
		return names(listed), err
	}
	log := func(ctx context.Context, id string) (*run.Report, error) {
		reply, err := client.Log(ctx, id)
		if err == nil && reply.Error != "" {
			err = fault.New(fault.NotFound, "%s", reply.Error)
		}
		if err != nil {
			return nil, err
		}
		report := new(run.Report)
		return report, json.Unmarshal(reply.Log, report)
	}
	return &recordings{list, log, func() error { return nil }}
}

func names(listed []run.Listed) []string {
	out := make([]string, len(listed))
	for i, l := range listed {
		out[i] = l.Run
	}
	return out
}

func writeReport(a *replayArgs, s *folded.Summary) (err error) {
	file, err := os.OpenFile(a.report, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if closing := file.Close(); err == nil {
			err = closing
		}
	}()
	return replay.Write(file, replay.Report{Summary: s, Tried: a.tried()})
}

// tried says what was tried, as the command line has it.
func (a *replayArgs) tried() string {
	var parts []string
	if a.with != "" {
		parts = append(parts, a.with)
	}
	for _, set := range []struct {
		kind  string
		files named
	}{{"plugin", a.plugins}, {"prompt", a.prompts}} {
		for _, name := range slices.Sorted(maps.Keys(set.files)) {
			parts = append(parts, set.kind+" "+name+" from "+set.files[name])
		}
	}
	return strings.Join(parts, ", ")
}

// printReplay prints what changed, run by run, and the sum.
func (w *weir) printReplay(s *folded.Summary) {
	for _, r := range s.Results {
		if r.Status == folded.StatusSame || r.Status == folded.StatusSkipped {
			continue
		}
		fmt.Fprintf(w.stdout, "run %s, recorded with %s: %s\n", r.Run, short(r.Generation), r.Status)
		for _, c := range r.Changes {
			fmt.Fprintf(w.stdout, "  %-15s step %d, %s, %s%s\n", c.Kind, c.Step, c.Stage, printable(c.What), printable(wasNow(c)))
		}
		for _, u := range r.Unanswered {
			fmt.Fprintf(w.stdout, "  %-15s step %d, %s, was %s: %s: %s\n", "unanswerable", u.Step, u.Stage, u.Was, printable(u.What), printable(u.Why))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.Recorded)) {
		fmt.Fprintf(w.stdout, "%-13s%s, %d runs\n", "recorded", short(id), s.Recorded[id])
	}
	fmt.Fprintf(w.stdout, "%-13s%s, %d runs\n", "tried", short(s.Generation), s.Judged[s.Generation])
	for _, id := range slices.Sorted(maps.Keys(s.Judged)) {
		if id != s.Generation {
			fmt.Fprintf(w.stdout, "%-13s%s, %d runs\n", "in a variant", short(id), s.Judged[id])
		}
	}
	fmt.Fprintf(w.stdout, "%-13s%d of %d: %d same, %d changed, %d unanswerable\n", "replayed", s.Replayed, s.Runs, s.Same, s.Changed, s.Unanswered)
	for _, reason := range slices.Sorted(maps.Keys(s.Skipped)) {
		fmt.Fprintf(w.stdout, "%-13s%d: %s\n", "skipped", s.Skipped[reason], printable(reason))
	}
	for _, kind := range folded.Kinds() {
		if s.Kinds[kind]+s.Unknown[kind] > 0 {
			fmt.Fprintf(w.stdout, "%-15s%d runs, not ruled out in %d more\n", kind, s.Kinds[kind], s.Unknown[kind])
		}
	}
	fmt.Fprintf(w.stdout, "%-13s%.1f %%, %d of %d questions\n", "coverage", s.Coverage()*100, s.Answered, s.Items)
	fmt.Fprintf(w.stdout, "%-13s%d fuel then, %d now; %.1f ms then, %.1f ms now\n", "guards", s.Fuel, s.FuelNow, s.Millis, s.MillisNow)
	for _, c := range s.Checks {
		verdict := "passed"
		if !c.Passed {
			verdict = "not passed"
		}
		fmt.Fprintf(w.stdout, "%-13s%s: %d runs, %s\n", "gate", c.Rule, c.Runs, verdict)
	}
}

func wasNow(c folded.Change) string {
	switch {
	case c.Was != "" && c.Now != "":
		return ": " + c.Was + " -> " + c.Now
	case c.Was != "":
		return ": was " + c.Was
	case c.Now != "":
		return ": now " + c.Now
	}
	return ""
}
