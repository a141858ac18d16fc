package host

import (
	"context"

	"weir/host/config"
	"weir/host/lock"
	"weir/host/tool"
)

// Pins is what agent.lock would say of the modules and prompts of a
// configuration as they are now. It needs no keys and no network.
func Pins(opts Options) (*lock.File, error) {
	cfg, err := config.Load(config.Source{Path: opts.ConfigPath, Env: opts.Env, Keyless: true})
	if err != nil {
		return nil, err
	}
	d, err := readDrafts(cfg, func(*config.Variant) bool { return true })
	if err != nil {
		return nil, err
	}
	f := d.digests()
	return &f, nil
}

// PinTools asks the MCP server, and is what agent.lock would say of the tools
// of a configuration.
func PinTools(ctx context.Context, opts Options) (map[string]string, error) {
	cfg, err := config.Load(config.Source{Path: opts.ConfigPath, Env: opts.Env, Keyless: true})
	if err != nil {
		return nil, err
	}
	o := toolOptions(cfg)
	o.Attempts = 1 // a person waits
	client, err := tool.Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return toolDigests(client.Set), nil
}
