package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"weir/host/fault"
	"weir/host/store"
)

// PutBlob implements store.Blobs.
func (s *Store) PutBlob(ctx context.Context, space string, data []byte) (string, error) {
	if err := s.key(ctx, space); err != nil {
		return "", err
	}
	if err := store.CheckSize("a blob", len(data), store.MaxBlob); err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blobs[space] == nil {
		s.blobs[space] = make(map[string][]byte)
	}
	if _, ok := s.blobs[space][digest]; !ok {
		s.blobs[space][digest] = slices.Clone(data)
	}
	return digest, nil
}

// Blob implements store.Blobs.
func (s *Store) Blob(ctx context.Context, space, digest string) ([]byte, error) {
	if err := s.blob(ctx, space, digest); err != nil {
		return nil, err
	}
	s.mu.Lock()
	data, ok := s.blobs[space][digest]
	s.mu.Unlock()
	if !ok {
		return nil, fault.New(fault.NotFound, "store: no such blob")
	}
	return slices.Clone(data), nil
}

// DeleteBlob implements store.Blobs.
func (s *Store) DeleteBlob(ctx context.Context, space, digest string) error {
	if err := s.blob(ctx, space, digest); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.blobs[space], digest)
	if len(s.blobs[space]) == 0 {
		delete(s.blobs, space)
	}
	return nil
}

// DropSpace implements store.Blobs.
func (s *Store) DropSpace(ctx context.Context, space string) error {
	if err := s.key(ctx, space); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.blobs, space)
	return nil
}

func (s *Store) blob(ctx context.Context, space, digest string) error {
	if err := s.key(ctx, space); err != nil {
		return err
	}
	return store.CheckDigest(digest)
}
