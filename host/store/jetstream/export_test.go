package jetstream

import (
	"context"

	"github.com/nats-io/nats.go"
)

// Peer returns another store on the server inside this process.
func (s *Store) Peer(ctx context.Context) (*Store, error) {
	p, err := open(ctx, s.opts, s.server)
	if err == nil {
		p.server = nil // the other one stops it
	}
	return p, err
}

// Conn is the store's connection, to do what others who have one might do.
func (s *Store) Conn() *nats.Conn { return s.conn }
