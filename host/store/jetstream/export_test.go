package jetstream

import (
	"context"
	"time"

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

// MakeLeader waits until a server of the cluster leads the stream of logs.
func (s *Store) MakeLeader(ctx context.Context, server string) error {
	for {
		var info struct {
			Cluster struct {
				Leader string `json:"leader"`
			} `json:"cluster"`
		}
		stream := s.name.stream(kindLog)
		if err := s.ask(ctx, "STREAM.INFO."+stream, struct{}{}, &info); err != nil || info.Cluster.Leader == server {
			return err
		}
		type placement struct {
			Preferred string `json:"preferred"`
		}
		r := struct {
			Placement placement `json:"placement"`
		}{placement{server}}
		if err := s.ask(ctx, "STREAM.LEADER.STEPDOWN."+stream, r, &struct{}{}); err != nil {
			return err
		}
		if err := s.pause(ctx, retryPause); err != nil {
			return err
		}
	}
}

// ProbeEvery sets how often lost notes are looked for.
func (o Options) ProbeEvery(d time.Duration) Options {
	o.probeEvery = d
	return o
}

// LoseNotes ends the subscription to notes.
func (s *Store) LoseNotes() error { return s.notes.sub.Unsubscribe() }

// Wake wakes every watch.
func (s *Store) Wake() { s.notes.wakeAll() }

// DecodeRecords and EncodeRecords are the form of an append's records.
var (
	DecodeRecords = decodeRecords
	EncodeRecords = encodeRecords
)

// DecodeEntry decodes a message of a log and returns what is said of it.
func DecodeEntry(header nats.Header, data []byte) (position int64, id string, records [][]byte, end bool, err error) {
	e, err := decodeEntry(stored{subject: "weir.1.log.a", seq: 1, header: header, data: data})
	return e.Position, e.ID, e.Records, e.end, err
}
