package config

import "log/slog"

const redacted = "[redacted]"

// Secret is text that no log, message or span may show: however it is printed
// it reads "[redacted]". The zero value is no secret.
type Secret struct{ text string }

// NewSecret keeps text as a secret.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text itself, for the one place that sends or compares it.
func (s Secret) Reveal() string { return s.text }

// Set tells whether there is a secret at all.
func (s Secret) Set() bool { return s.text != "" }

// String implements fmt.Stringer.
func (s Secret) String() string { return redacted }

// GoString implements fmt.GoStringer, for %#v.
func (s Secret) GoString() string { return redacted }

// MarshalText implements encoding.TextMarshaler.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON implements json.Marshaler.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// UnmarshalJSON implements json.Unmarshaler: what is read back is no secret.
func (s *Secret) UnmarshalJSON([]byte) error { *s = Secret{}; return nil }
