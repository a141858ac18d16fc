package match

// A link leads from a state to another. A guest has one thread, and there an
// atomic load is a call, which costs more than all else a character does.
type link struct{ to *state }

func (l *link) Load() *state    { return l.to }
func (l *link) Store(st *state) { l.to = st }
