package jetstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"weir/host/fault"
	"weir/host/store"
)

// partSize is how much of a blob one message holds. It is part of the version:
// parts are found by their number.
const partSize = 500 << 10

// PutBlob implements store.Blobs. Part 0 is written last: who finds it finds
// the others.
func (s *Store) PutBlob(ctx context.Context, space string, data []byte) (string, error) {
	if err := s.key(ctx, space); err != nil {
		return "", err
	}
	if err := store.CheckSize("a blob", len(data), store.MaxBlob); err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	b := blob{space: space, digest: hex.EncodeToString(sum[:])}
	var err error
	if b.key, err = s.makeSpaceKey(ctx, space); err != nil {
		return "", err
	}
	if _, found, err := s.part(ctx, b, 0); err != nil || found {
		return b.digest, err
	}
	parts := max(1, (len(data)+partSize-1)/partSize)
	for i := parts - 1; i >= 0; i-- {
		part := data[i*partSize : min(len(data), (i+1)*partSize)]
		if err := s.putPart(ctx, b, i, parts, part); err != nil {
			return "", err
		}
	}
	return b.digest, nil
}

func (s *Store) putPart(ctx context.Context, b blob, i, parts int, data []byte) error {
	sealed, err := b.seal(i, parts, data)
	if err != nil {
		return err
	}
	// Overwriting a part would leave the old one readable in the server's files.
	m := newMsgAfter(0, s.name.subject(kindBlob, b.part(i)), sealed)
	m.Header.Set(headerParts, strconv.Itoa(parts))
	s.age(m.Header.Set, b.space)
	if _, err = s.publish(ctx, m); errors.Is(err, errBehind) {
		return nil // it is there, from an earlier attempt
	}
	return err
}

// Blob implements store.Blobs.
func (s *Store) Blob(ctx context.Context, space, digest string) ([]byte, error) {
	b, found, err := s.find(ctx, space, digest)
	if err != nil {
		return nil, err
	}
	notFound := fault.New(fault.NotFound, "store: no such blob")
	if !found {
		return nil, notFound
	}
	first, found, err := s.part(ctx, b, 0)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, notFound
	}
	data, err := s.join(ctx, b, first)
	if fault.Of(err) == fault.Internal && ctx.Err() == nil {
		// It may have been deleted meanwhile.
		if _, found, again := s.part(ctx, b, 0); again == nil && !found {
			return nil, notFound
		}
	}
	return data, err
}

// join reads the parts behind the first one.
func (s *Store) join(ctx context.Context, b blob, first stored) ([]byte, error) {
	parts, err := strconv.Atoi(first.header.Get(headerParts))
	if err != nil || parts < 1 || parts > store.MaxBlob/partSize+1 {
		return nil, unreadable(first.subject, first.seq, "its number of parts is none")
	}
	var data []byte
	m := first
	for i := range parts {
		if i > 0 {
			var found bool
			if m, found, err = s.part(ctx, b, i); err != nil {
				return nil, err
			}
			if !found {
				return nil, fault.New(fault.Internal, "store: blob %s in %s: part %d of %d is missing", b.digest, b.space, i, parts)
			}
		}
		if data, err = b.open(data, i, parts, m.data); err != nil {
			return nil, unreadable(m.subject, m.seq, "it does not match its key")
		}
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != b.digest {
		return nil, fault.New(fault.Internal, "store: blob %s in %s does not match its digest", b.digest, b.space)
	}
	return data, nil
}

// DeleteBlob implements store.Blobs.
func (s *Store) DeleteBlob(ctx context.Context, space, digest string) error {
	b, found, err := s.find(ctx, space, digest)
	if err != nil || !found {
		return err
	}
	// The first part first: from then on the blob is not found.
	first, found, err := s.part(ctx, b, 0)
	if err != nil {
		return err
	}
	if found {
		if err := s.erase(ctx, kindBlob, first.seq); err != nil {
			return err
		}
	}
	return s.eraseAll(ctx, kindBlob, s.name.subject(kindBlob, b.path()+".*"))
}

// DropSpace implements store.Blobs.
func (s *Store) DropSpace(ctx context.Context, space string) error {
	if err := s.key(ctx, space); err != nil {
		return err
	}
	// The key first: from then on the blobs are unreadable, whatever happens.
	if err := s.eraseAll(ctx, kindKey, s.name.subject(kindKey, space)); err != nil {
		return err
	}
	var answer struct {
		Error *apiError `json:"error"`
	}
	r := struct {
		Filter string `json:"filter"`
	}{s.name.subject(kindBlob, space+".*.*.*")}
	if err := s.ask(ctx, "STREAM.PURGE."+s.name.stream(kindBlob), r, &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return fmt.Errorf("drop a space: %w", answer.Error.fault())
	}
	return nil
}

// eraseAll erases every message on a subject.
func (s *Store) eraseAll(ctx context.Context, kind, subject string) error {
	for next := uint64(1); ; {
		m, found, err := s.get(ctx, kind, getRequest{Seq: next, Next: subject})
		if err != nil || !found {
			return err
		}
		if err := s.erase(ctx, kind, m.seq); err != nil {
			return err
		}
		next = m.seq + 1
	}
}

// erase deletes a message and overwrites it where it was.
func (s *Store) erase(ctx context.Context, kind string, seq uint64) error {
	var answer struct {
		Error *apiError `json:"error"`
	}
	r := struct {
		Seq uint64 `json:"seq"`
	}{seq}
	if err := s.ask(ctx, "STREAM.MSG.DELETE."+s.name.stream(kind), r, &answer); err != nil {
		return err
	}
	if e := answer.Error; e != nil && e.ErrCode != noSequence && e.ErrCode != noMessage {
		return fmt.Errorf("erase: %w", e.fault())
	}
	return nil
}

// find checks the names of a blob and finds the key of its space, without which
// there is no blob.
func (s *Store) find(ctx context.Context, space, digest string) (blob, bool, error) {
	if err := s.key(ctx, space); err != nil {
		return blob{}, false, err
	}
	if err := store.CheckDigest(digest); err != nil {
		return blob{}, false, err
	}
	key, found, err := s.spaceKey(ctx, space)
	return blob{space: space, digest: digest, key: key}, found, err
}

func (s *Store) part(ctx context.Context, b blob, i int) (stored, bool, error) {
	m, found, err := s.get(ctx, kindBlob, getRequest{Last: s.name.subject(kindBlob, b.part(i))})
	if err == nil && found {
		err = m.checkVersion()
	}
	return m, found && err == nil, err
}

// age gives a message the life of the logs, if its space goes with them.
func (s *Store) age(set func(key, value string), space string) {
	if aged(space, s.opts.AgedSpaces) && s.opts.MaxAge > 0 {
		life := s.opts.MaxAge + 24*time.Hour
		set(headerTTL, strconv.FormatInt(int64(life/time.Second), 10))
	}
}
