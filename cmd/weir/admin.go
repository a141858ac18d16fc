package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"weir/host"
	"weir/host/admin"
	"weir/host/config"
	"weir/host/fault"
	folded "weir/host/run/replay"
)

func (w *weir) adminReload(ctx context.Context, args []string) int {
	var replay time.Duration
	var gate string
	flags := func(f *flag.FlagSet) {
		f.DurationVar(&replay, "replay", 0, "swap only if replaying the runs that began in this last while passes --gate")
		f.StringVar(&gate, "gate", "", "RULES as weir replay takes them")
	}
	return w.adminWith(ctx, "admin reload", args, flags, func(c *admin.Client, ctx context.Context) (admin.Reply, error) {
		rules, err := folded.ParseGate(gate)
		switch {
		case err != nil:
			return admin.Reply{}, err
		case replay == 0 && gate == "":
			return c.Reload(ctx)
		case replay <= 0 || len(rules) == 0:
			return admin.Reply{}, fault.New(fault.Invalid, "expected --replay with a duration and --gate with rules, together")
		}
		return c.ReloadIf(ctx, replay, gate)
	})
}

func (w *weir) adminRollback(ctx context.Context, args []string) int {
	return w.admin(ctx, "admin rollback", args, (*admin.Client).Rollback)
}

func (w *weir) adminStatus(ctx context.Context, args []string) int {
	return w.admin(ctx, "admin status", args, (*admin.Client).Status)
}

// admin asks the listener that the configuration names, with the key of the
// environment.
func (w *weir) admin(ctx context.Context, name string, args []string, ask func(*admin.Client, context.Context) (admin.Reply, error)) int {
	return w.adminWith(ctx, name, args, func(*flag.FlagSet) {}, ask)
}

// adminWith is admin for a command with flags of its own.
func (w *weir) adminWith(ctx context.Context, name string, args []string, more func(*flag.FlagSet), ask func(*admin.Client, context.Context) (admin.Reply, error)) int {
	f := w.flags(name)
	more(f)
	path := f.String("config", "", "agent.toml; wins over AGENT_CONFIG_PATH")
	asJSON := f.Bool("json", false, "print the listener's answer as one JSON object")
	if _, code, ok := w.parse(f, args, 0); !ok {
		return code
	}
	client, err := w.adminClient(*path)
	if err != nil {
		return w.refuse("weir "+name, err)
	}
	reply, err := ask(client, ctx)
	if fault.Of(err) == fault.Unavailable {
		err = fmt.Errorf("%w; expected a running host that has WEIR_ADMIN_KEY, too, and the same [admin] listen", err)
	}
	if err != nil {
		return w.refuse("weir "+name, err)
	}
	if *asJSON {
		if code := w.printJSON(reply); code != exitOK {
			return code
		}
	} else {
		w.printReply(name, reply)
	}
	switch {
	case reply.Error != "", reply.Outcome == "" && !reply.Status.InSync:
		return exitFailed
	case reply.Outcome != "" && !slices.Contains([]string{host.OutcomeSwapped, host.OutcomeUnchanged}, reply.Outcome):
		return exitFailed
	}
	return exitOK
}

func (w *weir) adminClient(path string) (*admin.Client, error) {
	a, err := config.LoadAdmin(config.Source{Path: path, Env: w.env})
	if err != nil {
		return nil, err
	}
	if !a.APIKey.Set() {
		return nil, fault.New(fault.Invalid, "environment WEIR_ADMIN_KEY: expected the key of the admin listener, it is missing or blank")
	}
	network, address := a.Network()
	return admin.NewClient(network, address, a.APIKey.Reveal()), nil
}

func (w *weir) printReply(name string, r admin.Reply) {
	if r.Error != "" {
		fmt.Fprintf(w.stderr, "weir %s: %s\n", name, strings.ReplaceAll(r.Error, "\n", "\n  "))
	}
	if r.Outcome != "" {
		fmt.Fprintf(w.stdout, "%s\n", r.Outcome)
	}
	if s := new(folded.Summary); len(r.Replay) > 0 && json.Unmarshal(r.Replay, s) == nil {
		w.printReplay(s)
	}
	printStatus(w.stdout, r.Status)
}

func printStatus(out io.Writer, s admin.Status) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%-11s%s\n", name, fmt.Sprintf(format, args...))
	}
	a := s.Active
	line("active", "%s since %s, %d runs", short(a.Generation), a.Since.Format(time.RFC3339), a.Runs)
	line("config", "%s sha256 %s", a.ConfigPath, a.ConfigSHA256)
	for _, p := range a.Plugins {
		line("plugin", "%s %s %.12s", p.Name, p.Version, p.Digest)
	}
	for _, v := range a.Variants {
		line("variant", "%s %g of the users, %s, %d runs", v.Name, v.Share, short(v.Generation), v.Runs)
		for _, p := range v.Plugins {
			line("", "  plugin %s %s %.12s", p.Name, p.Version, p.Digest)
		}
	}
	line("wanted", "%s by %s at %s", short(s.Wanted.Generation), s.Wanted.Trigger, s.Wanted.At.Format(time.RFC3339))
	line("in sync", "%v", s.InSync)
	if s.Building {
		line("building", "something is under way")
	}
	if e := s.LastError; e != nil {
		line("last error", "by %s at %s: %s", e.Trigger, e.At.Format(time.RFC3339), strings.ReplaceAll(e.Text, "\n", "\n           "))
	}
	other := func(id string) string {
		if id == a.Generation {
			return short(id) + " with other variants or shares"
		}
		return short(id)
	}
	if s.Previous != "" {
		line("previous", "%s", other(s.Previous))
	}
	if s.Held != "" {
		line("held", "%s was rolled back from; `weir admin reload` brings it back", other(s.Held))
	}
	for _, d := range s.Draining {
		line("draining", "%s with %d runs", short(d.Generation), d.Runs)
	}
	for _, key := range s.Restart {
		line("restart", "%s waits for a restart", key)
	}
	for _, t := range s.ChangedTools {
		line("tool", "%s has changed at the server, its calls are refused: admitted %.12s, offered %s", t.Name, t.Admitted, short(t.Offered))
	}
	for _, text := range s.Warnings {
		line("warning", "%s", text)
	}
}

// short is how people read an identity or a digest.
func short(id string) string {
	if id == "" {
		return "(none)"
	}
	return fmt.Sprintf("%.12s", id)
}
