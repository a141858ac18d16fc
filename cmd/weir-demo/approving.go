package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// switched are the lines of the shipped agent.toml that the demo runs with
// another value, unless they have it: people may approve a change, what waits
// for them outlives the process, and all contracts are served.
func switched() [][2]string {
	return [][2]string{
		{"\n[actions.ticket_priority_change]\nenabled = false\n", "\n[actions.ticket_priority_change]\nenabled = true\n"},
		{"\n# backend = \"memory\" ", "\nbackend = \"jetstream\" "},
		{"\n[contract.turn]\n# enabled = false ", "\n[contract.turn]\nenabled = true "},
	}
}

// approving makes a folder that looks like the configuration's own, with a copy
// of agent.toml in which approvals are switched on. The user's file stays as it
// is.
func approving(config string) (path string, remove func(), err error) {
	text, err := os.ReadFile(config)
	if err != nil {
		return "", nil, err
	}
	for _, line := range switched() {
		if !bytes.Contains(text, []byte(line[0])) && bytes.Contains(text, []byte(strings.TrimRight(line[1], " "))) {
			continue
		}
		if !bytes.Contains(text, []byte(line[0])) {
			return "", nil, fmt.Errorf("%s: expected the line %q to switch on for the demo what is off as shipped", config, line[0])
		}
		text = bytes.Replace(text, []byte(line[0]), []byte(line[1]), 1)
	}
	folder, err := os.MkdirTemp("", "weir-demo-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(folder) } // the system's own cleaning is left
	path = filepath.Join(folder, "agent.toml")
	if err := likeness(filepath.Dir(config), folder); err != nil {
		remove()
		return "", nil, err
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		remove()
		return "", nil, err
	}
	return path, remove, nil
}

// likeness links what relative paths in agent.toml name.
func likeness(from, to string) error {
	from, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	for _, name := range []string{"prompts", "plugins"} {
		if err := os.Symlink(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}
