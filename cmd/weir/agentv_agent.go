package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"weir/host"
	"weir/host/contract/turn"
)

// agentvStdio answers action objects to one caller on stdin and stdout. AgentV's
// harness starts a process for each turn, so what waits is kept for the next one
// of the same parent.
func (w *weir) agentvStdio(ctx context.Context, args []string) int {
	f := w.flags("agentv stdio")
	path := f.String("config", "", "agent.toml; wins over AGENT_CONFIG_PATH")
	forget := f.Bool("forget", false, "keep nothing for the next process of the same parent")
	if _, code, ok := w.parse(f, args, 0); !ok {
		return code
	}
	opts := host.TurnOptions{Listener: "stdio"}
	if !*forget {
		opts.Caller = parent()
	}
	return w.serveTurns(ctx, *path, opts, func(a *host.TurnAgent) error { return a.Lines(ctx, w.stdin, w.stdout) })
}

// agentvSocket answers action objects on a socket until SIGTERM or Ctrl-C.
func (w *weir) agentvSocket(ctx context.Context, args []string) int {
	f := w.flags("agentv socket")
	path := f.String("config", "", "agent.toml; wins over AGENT_CONFIG_PATH")
	address := f.String("listen", "", "tcp:HOST:PORT on loopback, or unix:PATH")
	if _, code, ok := w.parse(f, args, 0); !ok {
		return code
	}
	if *address == "" {
		fmt.Fprintf(w.stderr, "%s: expected --listen with tcp:HOST:PORT or unix:PATH\n", f.Name())
		f.Usage()
		return exitUsage
	}
	ln, err := turn.Listen(*address) // first, because loading the policy takes longer
	if err != nil {
		return w.refuse(refusedToStart, err)
	}
	defer ln.Close()
	return w.serveTurns(ctx, *path, host.TurnOptions{Listener: strings.TrimPrefix(*address, "socket://")}, func(a *host.TurnAgent) error {
		log, _ := w.logger(slog.LevelInfo)
		log.Info("listening", "address", ln.Addr().Network()+":"+ln.Addr().String())
		return a.Serve(ctx, ln)
	})
}

// serveTurns starts an agent, has it serve and stops it. Everything that is said
// beside answers goes to stderr.
func (w *weir) serveTurns(ctx context.Context, path string, opts host.TurnOptions, serve func(*host.TurnAgent) error) int {
	log, err := w.logger(slog.LevelInfo)
	if err != nil {
		return w.refuse(refusedToStart, err)
	}
	opts.Options = host.Options{ConfigPath: path, Env: w.env, Logger: log}
	agent, err := host.StartTurn(ctx, opts)
	if err != nil {
		return w.refuse(refusedToStart, err)
	}
	code := exitOK
	if err := serve(agent); err != nil && ctx.Err() == nil {
		code = w.refuse("weir failed", err)
	}
	if err := agent.Stop(context.WithoutCancel(ctx)); err != nil {
		code = w.refuse("weir failed", err)
	}
	return code
}
