package plugin

// afterCall decides what becomes of an instance. One that answered properly
// goes back to the pool as it is; any other is closed, and the next call makes
// a new one.
func (p *Plugin) afterCall(i *instance, err error) {
	i.session.printer.end()
	if err != nil {
		i.close()
		return
	}
	p.pool.put(i)
}
