package jetstream

import "weir/host/fault"

// Ready says why no call can be answered at this moment: Unavailable when the
// store was closed or its servers are out of reach. It asks nobody, so it may be
// called as often as a probe comes; a server that is reached and does not answer
// is found by the calls themselves.
func (s *Store) Ready() error {
	select {
	case <-s.closed:
		return fault.New(fault.Unavailable, "store: closed")
	default:
	}
	if !s.conn.IsConnected() {
		return fault.New(fault.Unavailable, "store: no server can be reached")
	}
	return nil
}
