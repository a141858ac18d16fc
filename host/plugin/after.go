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
	if !p.pool.slots.spare() { // or the next call could wait for what follows
		p.replace(i)
		return
	}
	p.calls.Add(1)
	go func() {
		defer p.calls.Done()
		p.replace(i)
	}()
}

// replace takes a used instance apart, which costs more than a call, and sees
// to the next ones.
func (p *Plugin) replace(i *instance) {
	p.giveBack(i, false)
	p.refill()
}
