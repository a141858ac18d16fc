package tickets

import "sync"

// LastApproval remembers, in memory only, the newest token whose change was
// committed, so that a demo can send it again and be refused. It is given to a
// server as [Options].Committed; nothing else ever keeps a token. The zero value
// is ready, and safe for concurrent use.
type LastApproval struct {
	mu               sync.Mutex
	token, requestID string
}

// Remember takes the place of what was remembered.
func (l *LastApproval) Remember(token, requestID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.token, l.requestID = token, requestID
}

// Accepted returns what was remembered; not ok before the first.
func (l *LastApproval) Accepted() (token, requestID string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.token, l.requestID, l.token != ""
}
