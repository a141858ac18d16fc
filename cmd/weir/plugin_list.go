package main

import (
	"context"
	"fmt"
	"log/slog"

	"weir/abi"
	"weir/host"
)

// listed is one plugin as --json prints it.
type listed struct {
	Name    string       `json:"name"`
	Role    string       `json:"role"` // workflow or guardrail
	Module  string       `json:"module"`
	Version string       `json:"version,omitempty"`
	Digest  string       `json:"digest,omitempty"`
	Carrier string       `json:"carrier,omitempty"` // direct or extism
	Lock    string       `json:"lock,omitempty"`
	Hooks   []abi.Hook   `json:"hooks,omitempty"`
	Mode    string       `json:"mode,omitempty"`
	OnError string       `json:"on_error,omitempty"`
	Roles   bool         `json:"roles"`
	Log     bool         `json:"log"`
	Prompts []string     `json:"prompts,omitempty"`
	Limits  listedLimits `json:"limits,omitzero"`
	Error   string       `json:"error,omitempty"`
}

// pluginList lists the configured plugins as they would run.
func (w *weir) pluginList(ctx context.Context, args []string) int {
	f := w.flags("plugin list")
	path := f.String("config", "", "agent.toml; wins over AGENT_CONFIG_PATH")
	asJSON := f.Bool("json", false, "print one JSON array")
	if _, code, ok := w.parse(f, args, 0); !ok {
		return code
	}
	log, err := w.logger(slog.LevelError)
	if err != nil {
		return w.refuse("weir plugin list", err)
	}
	report, err := host.List(ctx, host.Options{ConfigPath: *path, Env: w.env, Logger: log})
	if err != nil {
		return w.refuse("weir plugin list", err)
	}
	code := exitOK
	all := []listed{}
	for _, p := range report.Plugins {
		all = append(all, list(p, p.Settings.Name == report.Config.Agent.Workflow))
		if p.Err != nil || p.Missing {
			code = exitFailed
		}
	}
	if *asJSON {
		return max(code, w.printJSON(all))
	}
	for _, l := range all {
		w.printListed(l)
	}
	return code
}

func list(p host.PluginReport, workflow bool) listed {
	s := p.Settings
	l := listed{Name: s.Name, Role: abi.KindGuardrail, Module: s.Module, Version: p.Version, Digest: p.Digest, Carrier: p.Carrier, Lock: p.Lock,
		Hooks: p.Hooks, Mode: s.Mode, OnError: s.OnError, Roles: s.Roles, Log: s.Log, Prompts: s.Prompts}
	if workflow {
		l.Role, l.Mode, l.OnError = abi.KindWorkflow, "", ""
	}
	switch {
	case p.Missing:
		l.Error = "there is no such module; `make plugins` builds the shipped ones"
	case p.Err != nil:
		l.Error = p.Err.Error()
	default:
		l.Limits = limitsOf(p.Limits)
	}
	return l
}

func (w *weir) printListed(l listed) {
	role := l.Role
	if l.Mode != "" {
		role += ", " + l.Mode + ", on_error " + l.OnError
	}
	fmt.Fprintf(w.stdout, "%s %s: %s\n", l.Name, l.Version, role)
	fmt.Fprintf(w.stdout, "  module  %s\n", l.Module)
	if l.Digest != "" {
		fmt.Fprintf(w.stdout, "  sha256  %s (%s)\n", l.Digest, l.Lock)
	}
	if l.Error != "" {
		fmt.Fprintf(w.stdout, "  REFUSED %s\n", l.Error)
		return
	}
	fmt.Fprintf(w.stdout, "  hooks   %s; %s carrier\n  limits  %s\n", joinHooks(l.Hooks), l.Carrier, l.Limits)
	if l.Roles {
		fmt.Fprintln(w.stdout, "  roles   it sees the user's roles")
	}
	if l.Log {
		fmt.Fprintln(w.stdout, "  log     its lines go to stderr and may quote what users write")
	}
}
