package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"weir/host"
	"weir/host/config"
	"weir/host/fault"
	"weir/host/lock"
)

// lock writes agent.lock, or with --check only says what differs from it. Tools
// stay as they are pinned unless the server is asked: what it says must be
// looked at by somebody, so a build never takes it over.
func (w *weir) lock(ctx context.Context, args []string) int {
	f := w.flags("lock")
	path := f.String("config", "", "agent.toml; wins over AGENT_CONFIG_PATH")
	tools := f.Bool("tools", false, "ask the MCP server and pin its tools, too")
	check := f.Bool("check", false, "write nothing; exit code 1 when something differs")
	asJSON := f.Bool("json", false, "print one JSON object")
	if _, code, ok := w.parse(f, args, 0); !ok {
		return code
	}
	log, err := w.logger(slog.LevelWarn)
	if err != nil {
		return w.refuse("weir lock", err)
	}
	opts := host.Options{ConfigPath: *path, Env: w.env, Logger: log}
	file, before, after, err := pins(ctx, opts, *tools)
	if err == nil && !*check {
		err = after.Write(file)
	}
	if err != nil {
		return w.refuse("weir lock", err)
	}
	return w.printLock(file, before, after, *check, *asJSON)
}

// pins reads the lock as it is and makes it as it should be.
func pins(ctx context.Context, opts host.Options, tools bool) (file string, before, after *lock.File, err error) {
	cfg, err := config.Load(config.Source{Path: opts.ConfigPath, Env: opts.Env, Keyless: true})
	if err != nil {
		return "", nil, nil, err
	}
	file = cfg.Plugins.LockPath()
	before, err = lock.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		before, err = &lock.File{}, nil
	}
	if err != nil {
		return "", nil, nil, fmt.Errorf("%w; remove it to write a new one", err)
	}
	if after, err = host.Pins(opts); err != nil {
		return "", nil, nil, err
	}
	after.Tools = before.Tools
	if tools && !cfg.Tools.MCP.APIKey.Set() {
		return "", nil, nil, fault.New(fault.Invalid, "environment MCP_API_KEY: expected the key for the MCP server, it is missing or blank")
	}
	if tools {
		after.Tools, err = host.PinTools(ctx, opts)
	}
	return file, before, after, err
}

func (w *weir) printLock(file string, before, after *lock.File, check, asJSON bool) int {
	changes := before.Compare(*after)
	code := exitOK
	if check && len(changes) > 0 {
		code = exitFailed
	}
	if asJSON {
		type change struct {
			Kind   string `json:"kind"`
			Name   string `json:"name"`
			Pinned string `json:"pinned,omitempty"`
			Found  string `json:"found"`
		}
		out := struct {
			File    string   `json:"file"`
			Written bool     `json:"written"`
			Changes []change `json:"changes"`
		}{File: file, Written: !check, Changes: []change{}}
		for _, c := range changes {
			out.Changes = append(out.Changes, change(c))
		}
		return max(code, w.printJSON(out))
	}
	for _, c := range changes {
		fmt.Fprintf(w.stdout, "%s %s: %s is now %s\n", c.Kind, c.Name, short(c.Pinned), short(c.Found))
	}
	verb := "wrote"
	if check {
		verb = "compared"
	}
	fmt.Fprintf(w.stdout, "%s %s: %d modules, %d prompts, %d tools, %d of them changed\n", verb, file,
		len(after.Modules), len(after.Prompts), len(after.Tools), len(changes))
	return code
}
