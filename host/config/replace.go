package config

import (
	"os"

	"weir/host/fault"
)

// ReplaceModule has a plugin loaded from another file, for a trial of it.
func (c *Config) ReplaceModule(name, path string) error {
	for i := range c.Plugins.List {
		if p := &c.Plugins.List[i]; p.Name == name {
			p.Module = path
			return nil
		}
	}
	return fault.New(fault.Invalid, "plugin %.64q: expected one that %s configures", name, c.Path)
}

// ReplacePrompt reads a prompt from another file, for a trial of it.
func (c *Config) ReplacePrompt(name, path string) error {
	if _, ok := c.Prompts[name]; !ok {
		return fault.New(fault.Invalid, "prompt %.64q: expected one of [prompts] in %s", name, c.Path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fault.New(fault.Invalid, "prompt %s: %w", name, err)
	}
	if err := checkPrompt(data); err != nil {
		return fault.New(fault.Invalid, "prompt %s: %s: %w", name, path, err)
	}
	c.Prompts[name] = Prompt{Path: path, Text: string(data), SHA256: digest(data)}
	return nil
}
