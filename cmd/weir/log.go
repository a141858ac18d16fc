package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"weir/host"
	"weir/host/admin"
	"weir/host/config"
	"weir/host/fault"
	"weir/host/run"
)

func logCommands() []command {
	return []command{
		{"log show", "RUN [--config FILE] [--json]", "print a run's log: what happened when, with the texts that passed the guards",
			"weir log show 0b6a1c3e-7f0e-4a57-9b83-0f3f0f6f2d11", (*weir).logShow},
		{"log verify", "RUN [--config FILE] [--json]", "verify a run's log: the chain of headers, and every payload that is kept",
			"weir log verify 0b6a1c3e-7f0e-4a57-9b83-0f3f0f6f2d11", (*weir).logVerify},
		{"log export", "RUN [--config FILE] [-o FILE]", "write a run's log as one JSON object a line: the report's head, then the records",
			"weir log export 0b6a1c3e-7f0e-4a57-9b83-0f3f0f6f2d11 -o run.jsonl", (*weir).logExport},
	}
}

// readLog gets a run's log from a running host where there is a key for it, else
// from the store itself.
func (w *weir) readLog(ctx context.Context, path, id string) (*run.Report, error) {
	cfg, err := config.Load(config.Source{Path: path, Env: w.env, Keyless: true})
	if err != nil {
		return nil, err
	}
	if cfg.Admin.APIKey.Set() {
		network, address := cfg.Admin.Network()
		reply, err := admin.NewClient(network, address, cfg.Admin.APIKey.Reveal()).Log(ctx, id)
		switch {
		case fault.Of(err) == fault.Unavailable: // no host runs
		case err != nil:
			return nil, err
		case reply.Error != "":
			return nil, fault.New(fault.NotFound, "%s", reply.Error)
		default:
			report := new(run.Report)
			return report, json.Unmarshal(reply.Log, report)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	report, err := host.InspectRun(ctx, cfg, id)
	return report, held(err)
}

// held says how a running host is asked, where the store is in its hands.
func held(err error) error {
	if fault.Of(err) != fault.Conflict {
		return err
	}
	return fmt.Errorf("%w; a running host is asked where it and this command have the same WEIR_ADMIN_KEY", err)
}

func (w *weir) logShow(ctx context.Context, args []string) int {
	return w.log(ctx, "log show", args, func(r *run.Report, asJSON bool) int {
		if asJSON {
			return w.printJSON(r)
		}
		w.printRun(r)
		for i := range r.Entries {
			w.printRecord(&r.Entries[i])
		}
		return exitOK
	})
}

func (w *weir) logVerify(ctx context.Context, args []string) int {
	return w.log(ctx, "log verify", args, func(r *run.Report, asJSON bool) int {
		counts := map[string]int{}
		for i := range r.Entries {
			counts[r.Entries[i].Kept]++
		}
		if asJSON {
			return w.printJSON(map[string]any{"run": r.Run, "state": r.State, "records": len(r.Entries), "chain": r.Chain,
				"full": counts[run.KeptFull], "dropped": counts[run.KeptDropped], "withheld": counts[run.KeptWithheld]})
		}
		w.printRun(r)
		fmt.Fprintf(w.stdout, "verified: %d records in one chain, %d payloads as their headers say, %d dropped, %d withheld\n",
			len(r.Entries), counts[run.KeptFull], counts[run.KeptDropped], counts[run.KeptWithheld])
		return exitOK
	})
}

// log runs a command that reads one run's log.
func (w *weir) log(ctx context.Context, name string, args []string, show func(*run.Report, bool) int) int {
	f := w.flags(name)
	path := f.String("config", "", "agent.toml; wins over AGENT_CONFIG_PATH")
	asJSON := f.Bool("json", false, "print one JSON object")
	rest, code, ok := w.parse(f, args, 1)
	if !ok {
		return code
	}
	report, err := w.readLog(ctx, *path, rest[0])
	if err != nil {
		return w.refuse("weir "+name, err)
	}
	return show(report, *asJSON)
}

func (w *weir) logExport(ctx context.Context, args []string) int {
	f := w.flags("log export")
	path := f.String("config", "", "agent.toml; wins over AGENT_CONFIG_PATH")
	to := f.String("o", "", "the file to write; default the standard output")
	rest, code, ok := w.parse(f, args, 1)
	if !ok {
		return code
	}
	report, err := w.readLog(ctx, *path, rest[0])
	if err == nil {
		err = w.export(report, *to)
	}
	if err != nil {
		return w.refuse("weir log export", err)
	}
	return exitOK
}

// export writes the head without its records, then the records.
func (w *weir) export(r *run.Report, path string) (err error) {
	out := w.stdout
	if path != "" {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer func() {
			if closing := file.Close(); err == nil {
				err = closing
			}
		}()
		out = file
	}
	return writeExport(out, r)
}

func writeExport(out io.Writer, r *run.Report) error {
	head := *r
	head.Entries = nil
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(head); err != nil {
		return err
	}
	for i := range r.Entries {
		if err := lines.Encode(&r.Entries[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *weir) printRun(r *run.Report) {
	variant := ""
	if r.Variant != "" {
		variant = ", variant " + printable(r.Variant)
	}
	fmt.Fprintf(w.stdout, "run %s, generation %s%s, %s\n", r.Run, short(r.Generation), variant, r.State)
}

// printRecord prints one line; content is one line of JSON, so no text in it
// can move the cursor.
func (w *weir) printRecord(r *run.LogRecord) {
	content := string(r.Content)
	if r.Kept != run.KeptFull {
		content = "[" + r.Kept + "]"
	}
	fmt.Fprintf(w.stdout, "%3d  %s  epoch %d  %-22s %s\n", r.N, r.At().UTC().Format("15:04:05.000"), r.Epoch, r.Kind, printable(strings.TrimSpace(content)))
}
