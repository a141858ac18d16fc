package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"weir/cmd/weir/internal/conform"
)

// conformKey is the variable of the service key, the same that an agent reads.
const conformKey = "NAT_GATEWAY_API_KEY"

// conform holds an agent and its folder against the specifications. The exit
// code is 1 when a MUST failed, and 2 when nothing could be said.
func (w *weir) conform(ctx context.Context, args []string) int {
	f := w.flags("conform")
	var t conform.Target
	f.StringVar(&t.URL, "url", "", "the agent's address, such as http://127.0.0.1:8000")
	f.StringVar(&t.Key, "key", "", "its service key, or @FILE; without it the variable "+conformKey)
	f.StringVar(&t.Dir, "dir", "", "the folder that it is deployed from")
	f.StringVar(&t.Ask, "ask", "", "a question that it answers; asked several times, and nothing else is")
	specs := f.String("spec", "", "platform, agent-service and agentv, with commas; empty: all")
	asJSON := f.Bool("json", false, "print one JSON object")
	timeout := f.Duration("timeout", 15*time.Second, "of a request that asks no model")
	askTimeout := f.Duration("ask-timeout", 6*time.Minute, "of a request that does")
	if _, code, ok := w.parse(f, args, 0); !ok {
		return code
	}
	if *specs != "" {
		t.Spec = strings.Split(*specs, ",")
	}
	err := w.conformSecret(&t)
	var report *conform.Report
	if err == nil {
		report, err = conform.Run(ctx, t, conform.Options{Timeout: *timeout, AskTimeout: *askTimeout})
	}
	if err != nil {
		fmt.Fprintf(w.stderr, "weir conform: %v\n", err)
		return exitUsage
	}
	print := report.WriteText
	if *asJSON {
		print = report.WriteJSON
	}
	if err := print(w.stdout); err != nil {
		fmt.Fprintf(w.stderr, "weir conform: %v\n", err)
		return exitUsage
	}
	if report.Failed() {
		return exitFailed
	}
	return exitOK
}

// conformSecret finds the key: a command line is read by everybody on a
// machine, so a file or the environment is better.
func (w *weir) conformSecret(t *conform.Target) error {
	if t.Key == "" {
		t.Key, _ = w.env(conformKey)
	}
	if path, ok := strings.CutPrefix(t.Key, "@"); ok {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		t.Key = string(data)
	}
	t.Key = strings.TrimSpace(t.Key)
	return nil
}
