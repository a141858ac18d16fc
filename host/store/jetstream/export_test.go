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

// PeerWith is Peer with another prefix.
func (s *Store) PeerWith(ctx context.Context, prefix string) (*Store, error) {
	opts := s.opts
	opts.Prefix = prefix
	ctx, cancel := context.WithTimeout(ctx, opts.StartTimeout)
	defer cancel()
	p, err := open(ctx, opts, s.server)
	if err == nil {
		p.server = nil
	}
	return p, err
}

// Kill ends the server inside this process without a word to anybody, as far as
// that can be done from inside.
func (s *Store) Kill() { s.server.srv.Shutdown() }

// Leads tells whether the server inside this process leads the stream of logs.
func (s *Store) Leads(ctx context.Context) bool {
	var answer struct {
		Cluster struct {
			Leader string `json:"leader"`
		} `json:"cluster"`
	}
	err := s.ask(ctx, "STREAM.INFO."+s.name.stream(kindLog), struct{}{}, &answer)
	return err == nil && answer.Cluster.Leader == s.opts.Cluster.Server
}
