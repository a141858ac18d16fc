// Package approval checks approval tokens on the side that executes them, as
// section 4 of the agent-service contract says. A token is proof that a person
// saw a record in one state and chose one change of it:
//
//	base64url(canonical claims) "." base64url(HMAC-SHA256(secret, first part))
//
// [Verifier.Decode] answers whether the token is genuine and current, which
// needs no database; [Claims.Verify] whether it is meant for this very change,
// which is asked while the record is locked. Nothing here makes tokens.
package approval

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// Limits of 4.1 and 4.4.
const (
	// MinSecret is how long the secret must be, in bytes.
	MinSecret = 24
	// maxLifetime is the longest that a token may still have to live, in
	// seconds: the longest that may be configured and a minute of skew.
	maxLifetime = 1800 + 60
	version     = 1
)

// Refusal is why a token is not accepted, in the contract's words, which may be
// shown to whoever presented it.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// The refusals of 4.4, in the order in which they are looked for: the first
// eight come from Decode, the others from Verify.
const (
	ErrFormat           Refusal = "approval token has invalid format"
	ErrSignatureCoding  Refusal = "approval token signature is not base64url"
	ErrSignature        Refusal = "approval token signature is invalid"
	ErrPayloadCoding    Refusal = "approval token payload is not base64url"
	ErrPayload          Refusal = "approval token payload is invalid"
	ErrVersion          Refusal = "approval token version is not supported"
	ErrExpired          Refusal = "approval token has expired"
	ErrLifetime         Refusal = "approval token lifetime exceeds the maximum this server accepts"
	ErrBinding          Refusal = "approval token is not bound to this action and resource"
	ErrRequest          Refusal = "approval token is not bound to this authenticated request"
	ErrPayloadDigest    Refusal = "approval token payload does not match its own signature"
	ErrExpectedChoice   Refusal = "approval token was issued against a different authoritative choice"
	ErrUnexpectedChoice Refusal = "approval token must not carry a choice for this action"
	ErrCorrelation      Refusal = "approval token is missing audit identity or request correlation"
)

// Options configures a [Verifier]; its zero value works.
type Options struct {
	// Now is the clock, of which whole seconds count. Default time.Now.
	Now func() time.Time
}

// Verifier knows the secret. It is safe for concurrent use.
type Verifier struct {
	secret []byte
	now    func() time.Time
}

// New returns a verifier. The secret's bytes are used as they are, untrimmed;
// fewer than [MinSecret], or nothing but white space, are refused.
func New(secret string, opts Options) (*Verifier, error) {
	if len(secret) < MinSecret || strings.TrimSpace(secret) == "" {
		return nil, fmt.Errorf("the approval secret is too short, expected at least %d bytes", MinSecret)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Verifier{[]byte(secret), opts.Now}, nil
}

// Decode returns the claims of a token that was made with the secret and has
// not expired. The signature is checked before anything of the claims is read.
func (v *Verifier) Decode(token string) (*Claims, error) {
	payload, signature, ok := strings.Cut(token, ".")
	if !ok {
		return nil, ErrFormat
	}
	given, err := decode64(signature)
	if err != nil {
		return nil, ErrSignatureCoding
	}
	mac := hmac.New(sha256.New, v.secret)
	mac.Write([]byte(payload))
	if !hmac.Equal(given, mac.Sum(nil)) {
		return nil, ErrSignature
	}
	text, err := decode64(payload)
	if err != nil {
		return nil, ErrPayloadCoding
	}
	claims, err := decodeClaims(text)
	if err != nil {
		return nil, ErrPayload
	}
	if err := claims.current(v.now().Unix()); err != nil {
		return nil, err
	}
	return claims, nil
}

// current reports what is wrong with the version and the time.
func (c *Claims) current(now int64) error {
	switch {
	case c.version != version:
		return ErrVersion
	case c.Expires < now:
		return ErrExpired
	case c.Expires-now > maxLifetime: // not negative, so nothing overflows
		return ErrLifetime
	}
	return nil
}

// decode64 reads base64url without padding. The library skips line breaks and,
// unless strict, does not look at the last character's unused bits: either
// would let two texts stand for one token.
func decode64(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, base64.CorruptInputError(0)
	}
	return base64.RawURLEncoding.Strict().DecodeString(text)
}
