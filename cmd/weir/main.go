// Command weir is the agent host: `weir help` lists what it can do.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once, as if nobody listened.
	context.AfterFunc(ctx, stop)
	w := &weir{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.LookupEnv}
	code := w.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
