package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"weir/abi/strictjson"
)

// Claims are what a token says (4.3). They have no exported constructor: whoever
// holds some got them from [Verifier.Decode].
type Claims struct {
	Action     string
	ResourceID string
	ActorID    string // who decided, as the gateway named them
	RequestID  string // the authenticated request that asked
	Nonce      string // used at most once
	Expires    int64  // seconds since 1970, the last in which it is valid

	Choice         *string // nil: none
	ExpectedChoice *string // what the person was shown; nil: nothing
	// OverrideRequested is what the agent thought of Choice and ExpectedChoice:
	// recorded, never trusted.
	OverrideRequested bool
	Rationale         *string // nil: none

	// Payload is the canonical JSON of an object, or null.
	Payload []byte
	// Note is the payload's member note; nil: none.
	Note *string

	payloadSHA256 *string
	version       int64
}

// Bound is the change that a token is presented for.
type Bound struct {
	Action     string
	ResourceID string
	RequestID  string
	// Current is the record's choice as the locked row has it; nil for an
	// action that carries none.
	Current *string
}

// Verify reports the first reason why these claims do not allow b.
func (c *Claims) Verify(b Bound) error {
	switch {
	case c.Action != b.Action || c.ResourceID != b.ResourceID:
		return ErrBinding
	case c.RequestID != b.RequestID:
		return ErrRequest
	case !c.payloadMatches():
		return ErrPayloadDigest
	case b.Current == nil && (c.Choice != nil || c.ExpectedChoice != nil):
		return ErrUnexpectedChoice
	case b.Current != nil && (c.ExpectedChoice == nil || *c.ExpectedChoice != *b.Current):
		return ErrExpectedChoice
	case blank(c.ActorID) || blank(c.RequestID) || blank(c.Nonce):
		return ErrCorrelation
	}
	return nil
}

// payloadMatches: no digest goes with no payload, and only with that.
func (c *Claims) payloadMatches() bool {
	if string(c.Payload) == "null" || c.payloadSHA256 == nil {
		return string(c.Payload) == "null" && c.payloadSHA256 == nil
	}
	sum := sha256.Sum256(c.Payload)
	return hex.EncodeToString(sum[:]) == *c.payloadSHA256
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// decodeClaims reads the claims. Unknown ones are skipped, those that may be
// null may also be missing; a repeated name is refused, because two readers
// could then see two tokens.
func decodeClaims(text []byte) (*Claims, error) {
	c := &Claims{Payload: []byte("null")}
	seen := map[string]bool{}
	d := strictjson.NewDecoder(text)
	err := d.Object(func(name string) error {
		seen[name] = true
		return c.member(d, name)
	})
	if err == nil {
		err = d.End()
	}
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"v", "exp", "action", "resource_id", "actor_id", "request_id", "nonce"} {
		if !seen[name] {
			return nil, strictjson.Missing(name)
		}
	}
	return c, nil
}

func (c *Claims) member(d *strictjson.Decoder, name string) (err error) {
	switch name {
	case "v":
		c.version, err = d.Int()
	case "exp":
		c.Expires, err = d.Int()
	case "action":
		c.Action, err = d.String()
	case "resource_id":
		c.ResourceID, err = d.String()
	case "actor_id":
		c.ActorID, err = d.String()
	case "request_id":
		c.RequestID, err = d.String()
	case "nonce":
		c.Nonce, err = d.String()
	case "choice":
		c.Choice, err = optional(d)
	case "expected_choice":
		c.ExpectedChoice, err = optional(d)
	case "rationale":
		c.Rationale, err = optional(d)
	case "payload_sha256":
		c.payloadSHA256, err = optional(d)
	case "override_requested":
		c.OverrideRequested, err = d.Bool()
	case "payload":
		err = c.payload(d)
	default:
		err = d.Skip()
	}
	return err
}

func (c *Claims) payload(d *strictjson.Decoder) error {
	raw, err := d.Raw()
	if err != nil {
		return err
	}
	if c.Payload, err = strictjson.Canonical(nil, raw); err != nil || string(c.Payload) == "null" {
		return err
	}
	inside := strictjson.NewDecoder(c.Payload)
	return inside.Object(func(name string) (err error) {
		if name != "note" {
			return inside.Skip()
		}
		c.Note, err = optional(inside)
		return err
	})
}

// optional reads a string or null.
func optional(d *strictjson.Decoder) (*string, error) {
	if d.Null() {
		return nil, nil
	}
	s, err := d.String()
	if err != nil {
		return nil, err
	}
	return &s, nil
}
