package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"sync"

	"weir/host/fault"
	"weir/host/run"
)

// memory is the log of one replayed run, which nobody keeps.
type memory struct {
	mu       sync.Mutex
	messages [][][]byte
	blobs    map[string][]byte
}

func (m *memory) Append(_ context.Context, _ string, expected int64, _ string, records [][]byte) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if expected != int64(len(m.messages)) {
		return 0, fault.New(fault.Conflict, "the log is at %d, expected %d", len(m.messages), expected)
	}
	m.messages = append(m.messages, records)
	return int64(len(m.messages)), nil
}

func (m *memory) Read(_ context.Context, _ string, from int64) iter.Seq2[run.Message, error] {
	m.mu.Lock()
	messages := m.messages
	m.mu.Unlock()
	return func(yield func(run.Message, error) bool) {
		for i, records := range messages[min(int(from), len(messages)):] {
			if !yield(run.Message{Position: from + int64(i) + 1, Records: records}, nil) {
				return
			}
		}
	}
}

func (m *memory) Complete(ctx context.Context, log, id string, records [][]byte) error {
	_, err := m.Append(ctx, log, 0, id, records)
	return err
}

func (m *memory) End(context.Context, string) error { return nil }

func (m *memory) PutBlob(_ context.Context, space string, data []byte) (string, error) {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs[space+"/"+digest] = append([]byte(nil), data...)
	return digest, nil
}

func (m *memory) Blob(_ context.Context, space, digest string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if data, ok := m.blobs[space+"/"+digest]; ok {
		return data, nil
	}
	return nil, fault.New(fault.NotFound, "there is no blob %s", digest)
}

func (m *memory) DropSpace(_ context.Context, space string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.blobs {
		if len(name) > len(space) && name[:len(space)+1] == space+"/" {
			delete(m.blobs, name)
		}
	}
	return nil
}
