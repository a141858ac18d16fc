package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"weir/cmd/weir/internal/agentv/harness"
	"weir/cmd/weir/internal/agentv/ledger"
	"weir/cmd/weir/internal/agentv/scenario"
	"weir/host/fault"
)

// agentvVerify recomputes what a ledger says about itself.
func (w *weir) agentvVerify(_ context.Context, args []string) int {
	f := w.flags("agentv verify")
	path := f.String("scenario", "", "the scenario of the run; default the copy beside the ledger")
	routes := f.String("routes", "", "the routing manifest of the run")
	head := f.String("head", "", "the digest of the last line, as it was printed after the run")
	asJSON := f.Bool("json", false, "print one JSON object")
	rest, code, ok := w.parse(f, args, 1)
	if !ok {
		return code
	}
	v, err := w.verify(rest[0], *path, *routes, *head)
	if err != nil {
		w.refuse("weir agentv verify", err)
		return exitBroken
	}
	if *asJSON {
		if code := w.printJSON(v); code != exitOK {
			return exitBroken
		}
	} else {
		printVerification(w.stdout, v)
	}
	if !v.Holds {
		return exitFailed
	}
	return exitOK
}

func (w *weir) verify(path, scenarioPath, routes, head string) (*ledger.Verification, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, ledger.Name)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fault.New(fault.Invalid, "ledger: expected a readable file: %w", err)
	}
	defer file.Close()
	evidence := ledger.Evidence{Head: head}
	if scenarioPath == "" {
		if copied := filepath.Join(filepath.Dir(path), harness.ScenarioName); exists(copied) {
			scenarioPath = copied
		}
	}
	if scenarioPath != "" {
		s, err := scenario.Load(scenarioPath)
		if err != nil {
			return nil, err
		}
		_, extra, err := w.environment(routes)
		if err != nil {
			return nil, err
		}
		if evidence.Registry, err = harness.Registry(s, extra); err != nil {
			return nil, err
		}
		evidence.Workflow, evidence.Tools = s.Workflow, s.ToolsSource
	}
	verifier, err := ledger.NewVerifier()
	if err != nil {
		return nil, err
	}
	return verifier.Verify(file, evidence)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func printVerification(w io.Writer, v *ledger.Verification) {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "run\t%s\n", printable(v.RunID))
	open := 0
	for _, c := range v.Checks {
		if c.State == ledger.Open {
			open++
		}
		fmt.Fprintf(out, "%s\t%s\t%s\n", c.State, c.Name, printable(c.Detail))
	}
	switch {
	case !v.Holds:
		fmt.Fprintln(out, "\nthe ledger does not hold")
	case open > 0:
		fmt.Fprintf(out, "\nthe ledger holds as far as could be told: %d open\n", open)
	default:
		fmt.Fprintln(out, "\nthe ledger holds")
	}
	_ = out.Flush()
}
