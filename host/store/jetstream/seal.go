package jetstream

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"weir/host/fault"
)

const keySize = 32

// spaceKey is what the blobs of a space are encrypted with. Its sequence, which
// is never used again, is part of their subjects: what was left of a dropped
// space is not mistaken for what stands there now.
type spaceKey struct {
	seq    uint64
	secret []byte
}

// blob is one blob's place.
type blob struct {
	space, digest string
	key           spaceKey
}

func (b blob) path() string {
	return b.space + "." + strconv.FormatUint(b.key.seq, 10) + "." + b.digest
}

func (b blob) part(i int) string { return b.path() + "." + strconv.Itoa(i) }

// spaceKey returns the key of a space, if it has one.
func (s *Store) spaceKey(ctx context.Context, space string) (spaceKey, bool, error) {
	m, found, err := s.get(ctx, kindKey, getRequest{Last: s.name.subject(kindKey, space)})
	if err != nil || !found {
		return spaceKey{}, false, err
	}
	if err := m.checkVersion(); err != nil {
		return spaceKey{}, false, err
	}
	if len(m.data) != keySize {
		return spaceKey{}, false, unreadable(m.subject, m.seq, "expected a key of "+strconv.Itoa(keySize)+" bytes")
	}
	return spaceKey{seq: m.seq, secret: m.data}, true, nil
}

// makeSpaceKey returns the key of a space, of which there is one from now on. It
// is not remembered: another replica may have dropped the space.
func (s *Store) makeSpaceKey(ctx context.Context, space string) (spaceKey, error) {
	for attempt := range attempts {
		key, found, err := s.spaceKey(ctx, space)
		if err != nil || found {
			return key, err
		}
		secret := make([]byte, keySize)
		rand.Read(secret)
		m := newMsgAfter(0, s.name.subject(kindKey, space), secret)
		s.age(m.Header.Set, space)
		seq, err := s.publish(ctx, m)
		if err == nil {
			return spaceKey{seq: seq, secret: secret}, nil
		}
		if !errors.Is(err, errBehind) {
			return spaceKey{}, err
		}
		if err := s.overtaken(ctx, attempt); err != nil {
			return spaceKey{}, err
		}
	}
	return spaceKey{}, fault.New(fault.Unavailable, "store: overtaken %d times", attempts)
}

// seal encrypts a part: a random nonce, then AES-256-GCM, bound to its place.
func (b blob) seal(i, parts int, data []byte) ([]byte, error) {
	aead, err := b.key.aead()
	if err != nil {
		return nil, err
	}
	sealed := make([]byte, aead.NonceSize(), aead.NonceSize()+len(data)+aead.Overhead())
	rand.Read(sealed)
	return aead.Seal(sealed, sealed, data, b.place(i, parts)), nil
}

// open appends the decrypted part.
func (b blob) open(to []byte, i, parts int, sealed []byte) ([]byte, error) {
	aead, err := b.key.aead()
	if err != nil {
		return nil, err
	}
	n := aead.NonceSize()
	if len(sealed) < n {
		return nil, errors.New("cut")
	}
	return aead.Open(to, sealed[:n], sealed[n:], b.place(i, parts))
}

func (b blob) place(i, parts int) []byte {
	return fmt.Appendf(nil, "%d %s %d/%d", version, b.path(), i, parts)
}

func (k spaceKey) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// aged tells whether a space goes with the logs.
func aged(space, prefix string) bool { return prefix != "" && strings.HasPrefix(space, prefix) }
