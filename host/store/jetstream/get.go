package jetstream

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"weir/host/fault"
	"weir/host/store"
)

// stored is a message as the server keeps it.
type stored struct {
	subject string
	seq     uint64
	at      time.Time
	header  nats.Header
	data    []byte
}

// getRequest asks for the message at or after Seq on Next, or for the last one
// on Last.
type getRequest struct {
	Seq      uint64 `json:"seq,omitempty"`
	Next     string `json:"next_by_subj,omitempty"`
	Last     string `json:"last_by_subj,omitempty"`
	Batch    int    `json:"batch,omitempty"`
	MaxBytes int    `json:"max_bytes,omitempty"`
}

// get asks the stream's leader, who knows everything that was acknowledged, for
// one message.
func (s *Store) get(ctx context.Context, kind string, r getRequest) (stored, bool, error) {
	var answer struct {
		Error   *apiError `json:"error"`
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	err := s.ask(ctx, "STREAM.MSG.GET."+s.name.stream(kind), r, &answer)
	switch m := answer.Message; {
	case err != nil:
		return stored{}, false, err
	case answer.Error != nil && answer.Error.ErrCode == noMessage:
		return stored{}, false, nil
	case answer.Error != nil:
		return stored{}, false, answer.Error.fault()
	default:
		header, err := decodeHeader(m.Header)
		if err != nil {
			return stored{}, false, unreadable(m.Subject, m.Seq, "its header is none")
		}
		return stored{subject: m.Subject, seq: m.Seq, at: m.Time, header: header, data: m.Data}, true, nil
	}
}

func decodeHeader(data []byte) (nats.Header, error) {
	if len(data) == 0 {
		return nil, nil
	}
	return nats.DecodeHeadersMsg(data)
}

// unreadable names what is stored and cannot be understood.
func unreadable(subject string, seq uint64, why string) error {
	return fault.New(fault.Internal, "store: the message %d on %s is unreadable: %s", seq, subject, why)
}

// checkVersion refuses a message that another program wrote.
func (m stored) checkVersion() error {
	if v := m.header.Get(headerVersion); v != strconv.Itoa(version) {
		return unreadable(m.subject, m.seq, "it has version "+strconv.Quote(v)+", this program knows version "+strconv.Itoa(version))
	}
	return nil
}

// Bounds of one batch.
const (
	batchMessages = 256
	batchBytes    = 4 << 20
)

// batch asks any replica for the messages on a subject from a sequence on. It
// may miss the latest, and returns what came when an answer is incomplete.
func (s *Store) batch(ctx context.Context, kind, subject string, from uint64) ([]stored, error) {
	inbox := s.conn.NewRespInbox()
	sub, err := s.conn.SubscribeSync(inbox)
	if err != nil {
		return nil, wrapped(ctx, "store: nats", err)
	}
	defer sub.Unsubscribe()
	r := getRequest{Seq: from, Next: subject, Batch: batchMessages, MaxBytes: batchBytes}
	if err := s.send("DIRECT.GET."+s.name.stream(kind), inbox, r); err != nil {
		return nil, wrapped(ctx, "store: nats", err)
	}
	var messages []stored
	try, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	for {
		m, err := sub.NextMsgWithContext(try)
		if err != nil {
			if ctx.Err() == nil && try.Err() != nil {
				return messages, nil
			}
			return nil, wrapped(ctx, "store: nats", err)
		}
		if m.Header.Get("Status") != "" { // the end of the batch, or nothing there
			return messages, nil
		}
		one, err := fromDirect(m)
		if err != nil {
			return nil, err
		}
		messages = append(messages, one)
	}
}

// fromDirect takes the headers of the answer off the message that is in it.
func fromDirect(m *nats.Msg) (stored, error) {
	out := stored{subject: m.Header.Get("Nats-Subject"), header: m.Header, data: m.Data}
	var err error
	if out.seq, err = strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64); err != nil {
		return stored{}, fault.New(fault.Internal, "store: nats: an answer without a sequence")
	}
	if out.at, err = time.Parse(time.RFC3339Nano, m.Header.Get("Nats-Time-Stamp")); err != nil {
		return stored{}, fault.New(fault.Internal, "store: nats: an answer without a time")
	}
	return out, nil
}

// streamInfo is what the store looks at.
type streamInfo struct {
	State struct {
		LastSeq  uint64            `json:"last_seq"`
		Deleted  int               `json:"num_deleted"` // between the first and the last
		Subjects map[string]uint64 `json:"subjects"`
		Lost     struct {
			Messages []uint64 `json:"msgs"`
			Bytes    uint64   `json:"bytes"`
		} `json:"lost"`
	} `json:"state"`
}

// info tells whether there is a stream and what is in it.
func (s *Store) info(ctx context.Context, stream string) (streamInfo, bool, error) {
	var answer struct {
		streamInfo
		Error *apiError `json:"error"`
	}
	err := s.ask(ctx, "STREAM.INFO."+stream, struct{}{}, &answer)
	switch {
	case err != nil:
		return streamInfo{}, false, err
	case answer.Error != nil && answer.Error.ErrCode == noStream:
		return streamInfo{}, false, nil
	case answer.Error != nil:
		return streamInfo{}, false, answer.Error.fault()
	}
	return answer.streamInfo, true, nil
}

// subjects returns what follows the kind in the subjects on which there are
// messages and which begin with the prefix.
func (s *Store) subjects(ctx context.Context, kind, prefix string) ([]string, error) {
	filter := ">"
	if i := strings.LastIndexByte(prefix, '.'); i >= 0 {
		if store.CheckName(prefix[:i]) != nil {
			return nil, nil // no name begins like this
		}
		filter = prefix[:i] + ".>"
	}
	head := s.name.subject(kind, "")
	var found []string
	for offset := 0; ; {
		var answer struct {
			streamInfo
			Total int       `json:"total"`
			Error *apiError `json:"error"`
		}
		r := struct {
			Filter string `json:"subjects_filter"`
			Offset int    `json:"offset,omitempty"`
		}{head + filter, offset}
		if err := s.ask(ctx, "STREAM.INFO."+s.name.stream(kind), r, &answer); err != nil {
			return nil, err
		}
		if answer.Error != nil {
			return nil, answer.Error.fault()
		}
		for subject := range answer.State.Subjects {
			if name := strings.TrimPrefix(subject, head); strings.HasPrefix(name, prefix) {
				found = append(found, name)
			}
		}
		offset += len(answer.State.Subjects)
		if len(answer.State.Subjects) == 0 || offset >= answer.Total {
			return found, nil
		}
	}
}

// streamNames returns the names of all streams.
func (s *Store) streamNames(ctx context.Context) ([]string, error) {
	var found []string
	for {
		var answer struct {
			Streams []string  `json:"streams"`
			Total   int       `json:"total"`
			Error   *apiError `json:"error"`
		}
		r := struct {
			Offset int `json:"offset"`
		}{len(found)}
		if err := s.ask(ctx, "STREAM.NAMES", r, &answer); err != nil {
			return nil, err
		}
		if answer.Error != nil {
			return nil, answer.Error.fault()
		}
		found = append(found, answer.Streams...)
		if len(answer.Streams) == 0 || len(found) >= answer.Total {
			return found, nil
		}
	}
}
