package config

import (
	"os"

	"weir/host/fault"
)

// ReplaceModule has a plugin loaded from another file, for a trial of it: in the
// base, and in the variants that have it from the base.
func (c *Config) ReplaceModule(name, path string) error {
	if p := c.Plugins.Plugin(name); p != nil {
		was := p.Module
		p.Module = path
		for _, v := range c.Variants {
			if p := v.Config.Plugins.Plugin(name); p != nil && p.Module == was {
				p.Module = path
			}
		}
		return nil
	}
	return fault.New(fault.Invalid, "plugin %.64q: expected one that %s configures", name, c.Path)
}

// ReplacePrompt reads a prompt from another file, for a trial of it, like
// ReplaceModule.
func (c *Config) ReplacePrompt(name, path string) error {
	was, ok := c.Prompts[name]
	if !ok {
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
	for _, v := range c.Variants {
		if v.Config.Prompts[name].Path == was.Path {
			v.Config.Prompts[name] = c.Prompts[name]
		}
	}
	return nil
}
