package plugin

import "context"

// afterCall decides what becomes of an instance. One that answered properly
// goes back to the pool as it is; any other is closed, and the next call makes
// a new one. ctx is the one that the call ran with and must not be cancelled
// yet.
func (p *Plugin) afterCall(ctx context.Context, i *instance, err error) {
	i.session.printer.end()
	// wazero closes an instance from a goroutine of its own when the context
	// ends. One that ends while the last instruction runs may close an
	// instance that has just answered, and the next caller would pay for it.
	if err != nil || ctx.Err() != nil {
		i.close()
		return
	}
	p.pool.put(i)
}
