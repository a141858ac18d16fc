package plugin

// afterCall decides what becomes of an instance. One that answered properly is
// put back to its image and goes to the pool; so an idle instance holds
// nobody's data. Any other is closed, and the next call makes a new one.
func (p *Plugin) afterCall(i *instance, err error) {
	i.session.printer.end()
	keep := err == nil && i.reset(p.runtime.resetter)
	if !keep {
		p.discarded.Add(1)
	}
	if p.intro.image != nil {
		p.giveBack(i, keep)
		return
	}
	// Taking an instance apart costs more than a call; nobody waits for it but
	// who needs its place.
	p.calls.Add(1)
	go func() {
		defer p.calls.Done()
		p.giveBack(i, false)
		p.refill()
	}()
}
