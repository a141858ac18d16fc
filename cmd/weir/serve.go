package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"weir/host"
)

// refusedToStart begins what a start says that was none.
const refusedToStart = "weir refused to start"

// serve runs the host until ctx ends. Whatever fails before the listener is
// open is a refusal to start.
func (w *weir) serve(ctx context.Context, args []string) int {
	f := w.flags("serve")
	path := f.String("config", "", "agent.toml; wins over AGENT_CONFIG_PATH")
	if _, code, ok := w.parse(f, args, 0); !ok {
		return code
	}
	log, err := w.logger(slog.LevelInfo)
	if err != nil {
		return w.refuse(refusedToStart, err)
	}
	prefix := refusedToStart
	hangup := make(chan os.Signal, 1) // one that waits says as much as many
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	err = host.Serve(ctx, host.Options{ConfigPath: *path, Env: w.env, Logger: log, Hangup: hangup, Started: func(addr net.Addr) {
		prefix = "weir failed"
		log.Info("listening", "address", addr.String())
	}})
	if err != nil {
		return w.refuse(prefix, err)
	}
	return exitOK
}
