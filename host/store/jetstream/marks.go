package jetstream

import "sync"

// mark is where a log was when this process last looked.
type mark struct {
	position int64
	seq      uint64 // of the last message in the stream, the end included
	ended    bool
}

// maxMarks is how many logs are remembered, twice.
const maxMarks = 4096

// marks remembers where logs are, so that who appends again needs no question
// first. What is forgotten or outdated costs one.
type marks struct {
	mu       sync.Mutex
	new, old map[string]mark
}

func (m *marks) get(log string) (mark, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.new[log]
	if !ok {
		k, ok = m.old[log]
	}
	return k, ok
}

func (m *marks) set(log string, k mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.new == nil || len(m.new) >= maxMarks {
		m.old, m.new = m.new, make(map[string]mark)
	}
	m.new[log] = k
}

func (m *marks) drop(log string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.new, log)
	delete(m.old, log)
}
