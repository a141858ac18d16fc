package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"weir/host/config"
)

// configShow prints every value in force and where it comes from. It needs no
// keys and never shows one.
func (w *weir) configShow(_ context.Context, args []string) int {
	f := w.flags("config show")
	path := f.String("config", "", "agent.toml; wins over AGENT_CONFIG_PATH")
	asJSON := f.Bool("json", false, "print one JSON object")
	if _, code, ok := w.parse(f, args, 0); !ok {
		return code
	}
	cfg, err := config.Load(config.Source{Path: *path, Env: w.env, Keyless: true})
	if err != nil {
		return w.refuse("weir config show", err)
	}
	if *asJSON {
		return w.printJSON(struct {
			Path     string           `json:"path"`
			SHA256   string           `json:"sha256"`
			Settings []config.Setting `json:"settings"`
		}{cfg.Path, cfg.SHA256, cfg.Settings()})
	}
	fmt.Fprintf(w.stdout, "# %s sha256 %s\n", cfg.Path, cfg.SHA256)
	for _, s := range cfg.Settings() {
		if err := w.printSetting(s); err != nil {
			return w.refuse("weir config show", err)
		}
	}
	return exitOK
}

func (w *weir) printSetting(s config.Setting) error {
	text := "(not set)"
	if s.Value != nil {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(s.Value); err != nil {
			return err
		}
		text = string(bytes.TrimSpace(b.Bytes()))
	}
	source := s.Source
	if s.From != "" {
		source += " " + s.From
	}
	fmt.Fprintf(w.stdout, "%s = %s  # %s\n", s.Key, text, source)
	return nil
}

// configExport writes what an evaluator of the contract reads.
func (w *weir) configExport(_ context.Context, args []string) int {
	f := w.flags("config export-evaluator")
	path := f.String("config", "", "agent.toml; wins over AGENT_CONFIG_PATH")
	if _, code, ok := w.parse(f, args, 0); !ok {
		return code
	}
	cfg, err := config.Load(config.Source{Path: *path, Env: w.env, Keyless: true})
	if err != nil {
		return w.refuse("weir config export-evaluator", err)
	}
	if _, err := w.stdout.Write(cfg.EvaluatorYAML()); err != nil {
		return w.refuse("weir config export-evaluator", err)
	}
	return exitOK
}
