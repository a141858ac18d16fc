package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// exec runs a command against the agent and returns its exit code. The key goes
// by the environment: a command line is read by everybody on a machine.
func (d *demo) exec(ctx context.Context, command []string, stdout, stderr io.Writer) int {
	args := make([]string, len(command))
	for i, arg := range command {
		args[i] = strings.ReplaceAll(arg, "{url}", "http://"+d.address)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), "NAT_GATEWAY_API_KEY="+d.key)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintf(stderr, "weir-demo: %v\n", err)
		return 1
	}
	return 0
}
