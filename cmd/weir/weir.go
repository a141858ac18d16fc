package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"weir/host/config"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// weir is the program with everything that it touches outside itself.
type weir struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) (string, bool)
}

// command is one thing that the program can do.
type command struct {
	name    string // "serve", "config check"
	args    string
	summary string
	example string
	run     func(w *weir, ctx context.Context, args []string) int
}

func commands() []command {
	return append([]command{
		{"serve", "[--config FILE]", "serve the agent until SIGTERM or Ctrl-C, then drain",
			"weir serve --config agent.toml", (*weir).serve},
		{"config check", "[--config FILE]", "read the configuration and load the plugins as a start would, without a network",
			"weir config check", (*weir).configCheck},
		{"config show", "[--config FILE] [--json]", "print every value in force and where it comes from, secrets redacted",
			"weir config show", (*weir).configShow},
		{"config export-evaluator", "[--config FILE]", "print the prompts as the YAML file from which an evaluator computes the digests of /version",
			"weir config export-evaluator > evaluator.yml", (*weir).configExport},
		{"plugin call", "FILE --hook HOOK [--config JSON|@FILE] [--prompt NAME=@FILE] < REQUEST", "run one hook of a module and print its reply",
			`echo '{"text":"Write to a@example.com.","stream_pos":0,"final":true}' | weir plugin call plugins/dist/output-pii.wasm --hook check_output --config '{"entities":["EMAIL_ADDRESS"]}'`, (*weir).pluginCall},
		{"guard", "[--plugin NAME|FILE] [--config FILE] [--chunk HOW] [--prove] [--json] < TEXT", "show what output guards hold, edit and release of a text, or prove that no chunking matters",
			`echo 'Write to renee@example.com today.' | weir guard --chunk each`, (*weir).guard},
		{"plugin new", "NAME [--dir DIR]", "write a guardrail that builds and tests on its own, with the kit beside it",
			"weir plugin new no-shouting", (*weir).pluginNew},
		{"plugin build", "[DIR] [-o FILE]", "build a Go guest with the right flags and check the module",
			"weir plugin build no-shouting -o plugins/dist/no-shouting.wasm", (*weir).pluginBuild},
		{"plugin check", "FILE [--config JSON|@FILE] [--prompt NAME=@FILE] [--json]", "say what a module is: imports, exports, ABI, digest, size, limits, and why a host would refuse it",
			"weir plugin check plugins/dist/output-pii.wasm --config '{\"entities\":[\"IBAN_CODE\"]}'", (*weir).pluginCheck},
		{"plugin test", "FILE [--config JSON|@FILE] [--prompt NAME=@FILE] [--json]", "run the self-check cases that a module ships, and print each",
			"weir plugin test no-shouting/no-shouting.wasm", (*weir).pluginTest},
		{"plugin list", "[--config FILE] [--json]", "list the configured plugins with the limits in force, their digests and modes",
			"weir plugin list", (*weir).pluginList},
		{"lock", "[--config FILE] [--tools] [--check] [--json]", "write agent.lock: the digests of modules and prompts, and with --tools of the tools at the MCP server",
			"weir lock --tools", (*weir).lock},
		{"admin reload", "[--config FILE] [--replay 24h --gate RULES] [--json]", "have a running host read its policy again and make it current, or only if replaying the runs of a while through it passes a gate",
			`weir admin reload --replay 24h --gate "block->allow=0"`, (*weir).adminReload},
		{"admin rollback", "[--config FILE] [--json]", "have a running host go back to the previous policy",
			"weir admin rollback", (*weir).adminRollback},
		{"admin status", "[--config FILE] [--json]", "say which policy is active, which is wanted and why they differ; exit code 1 when they do",
			"weir admin status --json", (*weir).adminStatus},
		{"probe http", "URL [--timeout 5s]", "ask for URL and print the answer's status, 000 for no answer; exit code 0 for a status of 2xx, else 1",
			"weir probe http http://127.0.0.1:8000/health", (*weir).probeHTTP},
		{"probe status", "METHOD URL [--timeout 5s]", "print the status of a request, 000 for no answer; exit code 0 whatever it is",
			"weir probe status POST http://127.0.0.1:8000/v1/workflow/full", (*weir).probeStatus},
		{"probe tcp", "HOST:PORT [--timeout 5s]", "say by the exit code whether somebody listens",
			"weir probe tcp mcp-server:8080", (*weir).probeTCP},
		{"probe version", "[--url URL] [--config FILE] [--timeout 5s]", "print the agent's own /version, asked with the service key",
			"weir probe version", (*weir).probeVersion},
		{"probe mcp-auth", "[--config FILE] [--timeout 5s]", "check that the MCP server refuses who has no key, and not who has",
			"weir probe mcp-auth", (*weir).probeMCPAuth},
		{"conform", "[--url URL [--key KEY|@FILE]] [--dir DIR] [--ask QUESTION] [--spec NAMES] [--json]", "hold any agent and its folder against the platform's, the agent-service and the AgentV specification, clause by clause; exit code 2 when nothing can be said",
			"weir conform --url http://127.0.0.1:8000 --key @key.txt --dir . --ask 'Show me my open tickets.'", (*weir).conform},
		{"version", "[--json]", "print the versions of the program and of what it speaks",
			"weir version", (*weir).version},
	}, slices.Concat(logCommands(), agentvCommands(), compareCommands(), replayCommands())...)
}

// run finds the command and returns the exit code.
func (w *weir) run(ctx context.Context, args []string) int {
	if len(args) == 0 {
		w.help(w.stderr)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		if topic := args[1:]; len(topic) > 0 && !strings.HasPrefix(topic[0], "-") {
			return w.run(ctx, append(slices.Clone(topic), "--help"))
		}
		w.help(w.stdout)
		return exitOK
	case "--version":
		return w.version(ctx, args[1:])
	}
	for _, c := range commands() {
		words := strings.Fields(c.name)
		if len(args) >= len(words) && strings.Join(args[:len(words)], " ") == c.name {
			return c.run(w, ctx, args[len(words):])
		}
	}
	if code, ok := w.group(args); ok {
		return code
	}
	fmt.Fprintf(w.stderr, "weir: unknown command %q; `weir help` lists them\n", strings.Join(args[:min(len(args), 2)], " "))
	return exitUsage
}

// group answers the first word of several commands, alone or with a request for
// help, by those commands.
func (w *weir) group(args []string) (code int, ok bool) {
	group := slices.DeleteFunc(commands(), func(c command) bool { return !strings.HasPrefix(c.name, args[0]+" ") })
	if len(group) == 0 {
		return 0, false
	}
	if len(args) > 1 && slices.Contains([]string{"help", "-h", "-help", "--help"}, args[1]) {
		printCommands(w.stdout, group)
		return exitOK, true
	}
	if len(args) > 1 {
		fmt.Fprintf(w.stderr, "weir %s: unknown command %q, expected one of these:\n", args[0], args[1])
	}
	printCommands(w.stderr, group)
	return exitUsage, true
}

func printCommands(out io.Writer, some []command) {
	for _, c := range some {
		fmt.Fprintf(out, "  weir %s %s\n      %s\n      e.g. %s\n", c.name, c.args, c.summary, c.example)
	}
}

func (w *weir) help(out io.Writer) {
	fmt.Fprint(out, "weir hosts an agent whose policy is WebAssembly modules.\n\nCommands:\n")
	printCommands(out, commands())
	fmt.Fprintf(out, `
FILE is %s in the working directory unless %s names another.
%s sets what is logged on stderr: debug, info (default), warn or error.
Exit codes: 0 done, 1 refused or failed, 2 the command line is not understood.
`, config.DefaultPath, config.PathVariable, config.LogLevelVariable)
}

// flags begins the flags of a command.
func (w *weir) flags(name string) *flag.FlagSet {
	f := flag.NewFlagSet("weir "+name, flag.ContinueOnError)
	f.SetOutput(w.stderr)
	f.Usage = func() {
		untell(f)
		for _, c := range commands() {
			if c.name == name {
				fmt.Fprintf(f.Output(), "usage: weir %s %s\n%s\n", c.name, c.args, c.summary)
			}
		}
		f.PrintDefaults()
	}
	return f
}

// parse reads flags and arguments in any order. It returns the arguments, and
// the exit code where the command shall not run.
func (w *weir) parse(f *flag.FlagSet, args []string, operands int) ([]string, int, bool) {
	var rest []string
	tell(f)
	for {
		err := f.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			return nil, exitOK, false
		}
		if err != nil {
			return nil, exitUsage, false
		}
		if f.NArg() == 0 {
			break
		}
		rest = append(rest, f.Arg(0))
		args = f.Args()[1:]
	}
	if operands != several && len(rest) != operands && !(operands == optional && len(rest) <= 1) {
		expected := strconv.Itoa(operands) + " arguments"
		switch operands {
		case optional:
			expected = "at most 1 argument"
		case 1:
			expected = "1 argument"
		}
		fmt.Fprintf(w.stderr, "%s: expected %s beside the flags, got %d\n", f.Name(), expected, len(rest))
		f.Usage()
		return nil, exitUsage, false
	}
	return rest, exitOK, true
}

// optional as a number of operands is none or one, several any number.
const (
	optional = -1
	several  = -2
)

// printJSON prints a value as one line.
func (w *weir) printJSON(v any) int {
	data, err := json.Marshal(v)
	if err != nil {
		fmt.Fprintf(w.stderr, "weir: %v\n", err)
		return exitFailed
	}
	fmt.Fprintf(w.stdout, "%s\n", data)
	return exitOK
}

// logger writes text to stderr at the level of WEIR_LOG_LEVEL.
func (w *weir) logger(level slog.Level) (*slog.Logger, error) {
	if text, _ := w.env(config.LogLevelVariable); strings.TrimSpace(text) != "" {
		if err := level.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
			return nil, fmt.Errorf("environment %s: expected debug, info, warn or error", config.LogLevelVariable)
		}
	}
	return slog.New(slog.NewTextHandler(w.stderr, &slog.HandlerOptions{Level: level})), nil
}

// refuse prints every reason of an error on a line of its own.
func (w *weir) refuse(prefix string, err error) int {
	for _, p := range config.Problems(err) {
		fmt.Fprintf(w.stderr, "%s: %s\n", prefix, strings.ReplaceAll(p.Error(), "\n", "\n  "))
	}
	return exitFailed
}
