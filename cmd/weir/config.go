package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"weir/host"
)

// configCheck says what a start would say, and what would run.
func (w *weir) configCheck(ctx context.Context, args []string) int {
	f := w.flags("config check")
	path := f.String("config", "", "agent.toml; wins over AGENT_CONFIG_PATH")
	if _, code, ok := w.parse(f, args, 0); !ok {
		return code
	}
	log, err := w.logger(slog.LevelWarn)
	if err != nil {
		return w.refuse("weir config check", err)
	}
	report, err := host.Check(ctx, host.Options{ConfigPath: *path, Env: w.env, Logger: log})
	if err != nil {
		return w.refuse("weir config check", err)
	}
	w.printReport(report)
	return exitOK
}

func (w *weir) printReport(r *host.Report) {
	c := r.Config
	fmt.Fprintf(w.stdout, "ok %s (sha256 %s)\n", c.Path, c.SHA256)
	fmt.Fprintf(w.stdout, "agent      %s %s, listens on %s\n", c.Agent.Name, c.Agent.Version, c.Server.Listen)
	fmt.Fprintf(w.stdout, "models     agent %s, guard %s\n", c.Model.Agent.Name, c.Model.Guard.Name)
	fmt.Fprintf(w.stdout, "tools      %s\n", strings.Join(c.Tools.MCP.Include, ", "))
	for _, name := range slices.Sorted(maps.Keys(c.Prompts)) {
		fmt.Fprintf(w.stdout, "prompt     %s sha256 %s\n", name, c.Prompts[name].SHA256)
	}
	for _, p := range r.Plugins {
		fmt.Fprintf(w.stdout, "plugin     %s\n", describePlugin(p, p.Settings.Name == c.Agent.Workflow))
	}
	if r.Generation != "" {
		fmt.Fprintf(w.stdout, "generation %s\n", r.Generation)
	}
	for _, v := range r.Variants {
		fmt.Fprintf(w.stdout, "variant    %s %g of the users, generation %s\n", v.Name, v.Share, v.Generation)
	}
	for _, text := range r.Notes {
		fmt.Fprintf(w.stdout, "warning    %s\n", text)
	}
	for _, p := range r.Plugins {
		if p.Missing {
			fmt.Fprintf(w.stdout, "warning    plugin %s: there is no module %s, so it was not checked and a start is refused; `make plugins` builds the shipped ones\n",
				p.Settings.Name, p.Settings.Module)
		}
	}
}

// describePlugin is one line: what the module is, and the limits in force.
func describePlugin(p host.PluginReport, workflow bool) string {
	s := p.Settings
	role := s.Mode + ", on_error " + s.OnError
	if workflow {
		role = "the workflow"
	}
	if p.Missing {
		return s.Name + ": " + role
	}
	return fmt.Sprintf("%s %s %.12s: %s; %s; %s", s.Name, p.Version, p.Digest, role, joinHooks(p.Hooks), limitsOf(p.Limits))
}
