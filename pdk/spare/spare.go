// Package spare has objects made before they are needed. An allocation costs a
// Go guest as much as reading a short request, and the pages that it writes are
// put back after the call. What configure makes is part of the image that every
// call begins with, so each call finds the same spare objects there.
package spare

// Of has spare objects of one type. Unlike an object that is used again, one
// that was taken belongs to its taker for good: natively and without a host that
// puts instances back, objects are made when there is none left.
//
// It is not safe for concurrent use; a guest is never called twice at once. The
// zero value has none.
type Of[T any] struct{ list []T }

// Enough is for a module's own cases, which it is called with before its image
// is made, and one call.
const Enough = 24

// Fill makes n objects. Ready, which may be nil, gets each to be used.
func (s *Of[T]) Fill(n int, ready func(*T)) {
	s.list = make([]T, n)
	for i := range s.list {
		if ready != nil {
			ready(&s.list[i])
		}
	}
}

// Take returns an object that nobody else has: a spare one, or a new one as the
// zero value is.
func (s *Of[T]) Take() *T {
	if len(s.list) == 0 {
		return new(T)
	}
	t := &s.list[0]
	s.list = s.list[1:]
	return t
}
