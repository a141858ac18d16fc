// Command weir-demo shows weir at work on one machine, without keys and without
// a network: it starts a support desk (a real MCP server), a scripted language
// model (reached over HTTP like a real one) and `weir serve` as a child, plays
// the gateway's part in five conversations, the last of which has a person
// approve a change, and says whether each went as it should.
//
//	weir-demo            five conversations, exit code 0 if all went well
//	weir-demo --serve    keeps everything running and prints a curl line
//	weir-demo --exec weir conform --url {url}
//	                     runs a command in place of the conversations
//
// It is a program of its own so that the product carries no demo.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"weir/cmd/weir-demo/internal/gateway"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // whoever presses Ctrl-C again means it
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// settings are the command line.
type settings struct {
	weir    string
	config  string
	address string
	tickets string
	serve   bool
	command []string // in place of the conversations
	compare string   // folder of a comparison's report
	verbose bool
	wait    time.Duration
	colour  bool
}

func parse(args []string, stdout, stderr io.Writer) (settings, error) {
	var s settings
	f := flag.NewFlagSet("weir-demo", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&s.weir, "weir", beside("weir"), "the weir binary to start")
	f.StringVar(&s.config, "config", "agent.toml", "the agent's configuration")
	f.StringVar(&s.address, "address", "127.0.0.1:8000", "where the agent listens; a free port if it is in use")
	f.StringVar(&s.tickets, "tickets", "", "keep the tickets in this SQLite file; without it they go when the demo ends")
	f.BoolVar(&s.serve, "serve", false, "keep everything running and print a curl line")
	exec := f.Bool("exec", false, "run the command that follows in place of the conversations: {url} is the agent's address, NAT_GATEWAY_API_KEY its key")
	f.StringVar(&s.compare, "compare", "", "compare the agent with itself without guardrails in place of the conversations, and write the report into this folder; what follows goes to weir compare")
	f.BoolVar(&s.verbose, "verbose", false, "show the agent's log")
	f.DurationVar(&s.wait, "wait", 2*time.Minute, "how long the agent may take to be ready; the first start compiles the plugins")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if *exec {
		if s.command = f.Args(); len(s.command) == 0 {
			fmt.Fprintln(stderr, "weir-demo: expected a command after --exec")
			return s, errors.New("no command")
		}
	} else if s.compare != "" {
		s.command = f.Args()
	} else if f.NArg() > 0 {
		fmt.Fprintf(stderr, "weir-demo: unexpected argument %q\n", f.Arg(0))
		return s, errors.New("unexpected argument")
	}
	s.colour = wantsColour(stdout)
	return s, nil
}

// beside names a program in the folder of this one.
func beside(name string) string {
	if self, err := os.Executable(); err == nil {
		return filepath.Join(filepath.Dir(self), name)
	}
	return name
}

// wantsColour: only on a terminal, and not where NO_COLOR is set.
func wantsColour(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// run is the whole program: 0 when every conversation went as it should, 1 when
// not, 2 for a command line that is not understood.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stdout, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	if s.compare != "" {
		return comparison(ctx, s, stdout, stderr)
	}
	d, err := start(ctx, s, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "weir-demo: %v\n", err)
		return 1
	}
	defer d.stop()
	if s.serve {
		return d.keep(ctx, stdout)
	}
	if s.command != nil {
		return d.exec(ctx, s.command, stdout, stderr)
	}
	return d.play(ctx, stdout, stderr)
}

// play has the five conversations.
func (d *demo) play(ctx context.Context, stdout, stderr io.Writer) int {
	failures := d.gateway.Play(ctx, append(gateway.Demo(), gateway.Approval(d.desk)))
	fmt.Fprintln(stdout)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "weir-demo: interrupted")
		return 1
	case failures > 0:
		fmt.Fprintf(stdout, "%d expectations failed. The agent's log:\n", failures)
		d.agent.dump(stderr)
		return 1
	}
	fmt.Fprintln(stdout, "Every conversation went as it should.")
	return 0
}

// keep runs until it is interrupted or the agent ends.
func (d *demo) keep(ctx context.Context, stdout io.Writer) int {
	fmt.Fprintf(stdout, "\nEverything runs. Try, in another terminal:\n\n%s\n\nCtrl-C ends it.\n",
		d.gateway.Curl("Show me my open tickets."))
	select {
	case <-ctx.Done():
		return 0
	case <-d.agent.ended:
		fmt.Fprintf(stdout, "the agent has ended: %v\n", d.agent.err)
		return 1
	}
}
