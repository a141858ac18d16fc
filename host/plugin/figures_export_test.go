package plugin

import (
	"context"
	"time"

	"weir/abi"
)

// ResetTime calls a hook and returns how long the reset after it takes.
func ResetTime(p *Plugin, hook abi.Hook, request []byte) (took time.Duration, ok bool) {
	i := p.pool.take()
	defer p.pool.put(i)
	if _, _, err := i.call(context.Background(), hook, p.bounds(hook, setupStamp(), len(request)), request, nil); err != nil {
		return 0, false
	}
	begun := time.Now()
	ok = i.reset(p.runtime.resetter)
	return time.Since(begun), ok
}

// Births returns a function that makes an instance from the module, which must
// be the plugin's, initialises, configures and closes it.
func Births(p *Plugin, wasm []byte) (func() error, error) {
	o, err := parseModule(wasm)
	if err != nil {
		return nil, err
	}
	return func() error {
		i, err := p.birth(context.Background(), o.data)
		if err != nil {
			return err
		}
		defer i.close()
		_, err = p.configure(context.Background(), i, p.config)
		return err
	}, nil
}
