package dna

import (
	"strings"

	"weir/abi/strictjson"
)

// Redacted stands in a snapshot where a secret was.
const Redacted = "[REDACTED]"

// Snapshot is environmental_snapshot: the registry with [Redacted] for the value
// of every name that sounds like a secret's, at any depth. It says how many
// values were replaced; while that is none, the snapshot has the digest of the
// registry.
func Snapshot(registry []byte) (snapshot []byte, redacted int, err error) {
	s := snapshotter{d: strictjson.NewDecoder(registry)}
	if err := s.value(); err != nil {
		return nil, 0, err
	}
	if err := s.d.End(); err != nil {
		return nil, 0, err
	}
	return s.out, s.redacted, nil
}

// secretive tells whether a name sounds like a secret's. AgentV's list has
// api_key, access_key and private_key beside key, and bearer.
func secretive(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"key", "token", "secret", "password", "bearer"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

type snapshotter struct {
	d        *strictjson.Decoder
	out      []byte
	redacted int
}

func (s *snapshotter) value() error {
	switch s.d.Kind() {
	case strictjson.Object:
		return s.object()
	case strictjson.Array:
		return s.array()
	}
	raw, err := s.d.Raw()
	s.out = append(s.out, raw...)
	return err
}

func (s *snapshotter) object() error {
	s.out = append(s.out, '{')
	first := true
	err := s.d.Object(func(name string) error {
		s.separate(&first)
		s.out = append(strictjson.AppendString(s.out, name), ':')
		if !secretive(name) {
			return s.value()
		}
		s.redacted++
		s.out = append(s.out, `"`+Redacted+`"`...)
		return s.d.Skip()
	})
	s.out = append(s.out, '}')
	return err
}

func (s *snapshotter) array() error {
	s.out = append(s.out, '[')
	first := true
	err := s.d.Array(func() error {
		s.separate(&first)
		return s.value()
	})
	s.out = append(s.out, ']')
	return err
}

func (s *snapshotter) separate(first *bool) {
	if !*first {
		s.out = append(s.out, ',')
	}
	*first = false
}
