package memory

import (
	"encoding/json"
	"time"

	"weir/host/fault"
	"weir/host/store"
)

// snapshot is a store as text. Its layout is of this program alone: another
// version is refused.
type snapshot struct {
	Version int                          `json:"version"`
	Logs    map[string][]message         `json:"logs"` // those that have not ended
	Values  map[string]value             `json:"values"`
	Blobs   map[string]map[string][]byte `json:"blobs"`
}

type message struct {
	ID      string   `json:"id"`
	Records [][]byte `json:"records"`
}

type value struct {
	Data    []byte `json:"data"`
	Expires int64  `json:"expires,omitempty"` // milliseconds; 0: never
}

const snapshotVersion = 1

// Snapshot returns what a store holds that has not ended or expired, for
// [Restore]: of a process that is followed by another. Ended logs and their
// blobs are left out.
func (s *Store) Snapshot() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := snapshot{Version: snapshotVersion, Logs: map[string][]message{}, Values: map[string]value{}, Blobs: map[string]map[string][]byte{}}
	ended := map[string]bool{}
	for name, l := range s.logs {
		if ended[name] = l.ended; l.ended {
			continue
		}
		for _, m := range l.messages {
			out.Logs[name] = append(out.Logs[name], message{m.ID, m.Records})
		}
	}
	for key := range s.values.entries {
		e := s.values.live(key)
		if e.revision == 0 {
			continue
		}
		v := value{Data: e.data}
		if !e.expires.IsZero() {
			v.Expires = e.expires.UnixMilli()
		}
		out.Values[key] = v
	}
	for space, blobs := range s.blobs {
		if !ended[space] {
			out.Blobs[space] = blobs
		}
	}
	return json.Marshal(out)
}

// Restore returns a store with what a snapshot holds. An error is of kind
// Internal: the text is none of this version's.
func Restore(data []byte, opts Options) (*Store, error) {
	var in snapshot
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fault.New(fault.Internal, "store: snapshot: %w", err)
	}
	if in.Version != snapshotVersion {
		return nil, fault.New(fault.Internal, "store: snapshot: expected version %d, got %d", snapshotVersion, in.Version)
	}
	s := New(opts)
	for name, messages := range in.Logs {
		l := s.create(name)
		for i, m := range messages {
			l.messages = append(l.messages, store.Message{Position: int64(i + 1), ID: m.ID, Records: m.Records})
		}
	}
	for key, v := range in.Values {
		s.values.revision++
		e := entry{data: v.Data, revision: s.values.revision}
		if v.Expires != 0 {
			e.expires = time.UnixMilli(v.Expires)
		}
		s.values.entries[key] = e
	}
	for space, blobs := range in.Blobs {
		s.blobs[space] = blobs
	}
	return s, nil
}
