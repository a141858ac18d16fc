package approval

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/fault"
)

// MinSecret is how many characters the secret must have; it is used as it is,
// not trimmed (4.1).
const MinSecret = 24

// signable reports what cannot be signed for whatever anybody answers; the
// texts are the contract's (4.3).
func (p *Proposal) signable(who Authority) error {
	switch {
	case blank(who.Actor) || blank(who.RequestID):
		return errors.New("approval requires an authenticated actor and a gateway request id")
	case p.action.TTL < MinTTL || p.action.TTL > MaxTTL:
		return errors.New(maxTTLText)
	case blank(who.Nonce):
		return errors.New("approval requires a nonce")
	}
	return nil
}

// claims writes the thirteen claims in canonical form. An empty rationale is
// null: nobody was asked for one.
func (p *Proposal) claims(who Authority, choice, rationale string) abi.Raw {
	payload := []byte("{}")
	if p.note != "" {
		payload = canonical(append(append([]byte(`{"note":`), jsonString(p.note)...), '}'))
	}
	sum := sha256.Sum256(payload)
	var reason any
	if rationale != "" {
		reason = rationale
	}
	return canonical(object(
		field{"v", int64(1)},
		field{"exp", who.Now.Add(p.action.TTL).Unix()},
		field{"action", p.action.Name},
		field{"resource_id", p.resource},
		field{"actor_id", who.Actor},
		field{"request_id", who.RequestID},
		field{"choice", choice},
		field{"expected_choice", p.current},
		field{"override_requested", choice != p.current},
		field{"rationale", reason},
		field{"payload", abi.Raw(payload)},
		field{"payload_sha256", hex.EncodeToString(sum[:])},
		field{"nonce", who.Nonce},
	))
}

// canonical panics on what is not JSON: its callers wrote it themselves.
func canonical(value []byte) []byte {
	b, err := strictjson.Canonical(nil, value)
	if err != nil {
		panic(fmt.Sprintf("approval: a value of ours is not JSON: %v", err))
	}
	return b
}

// Mint signs claims (4.1). The same claims and secret give the same token, so
// what stands in the log is the claims. They must be canonical and complete:
// anything else was not made by Next, and is an error of kind fault.Invalid.
// The error never holds the secret or a claim.
func Mint(secret []byte, claims abi.Raw) (string, error) {
	if !strong(secret) {
		return "", fault.New(fault.Invalid, "approval secret: expected at least %d characters", MinSecret)
	}
	if _, err := readClaims(claims); err != nil {
		return "", err
	}
	payload := base64.RawURLEncoding.EncodeToString(claims)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(payload))
	return payload + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

func strong(secret []byte) bool {
	return utf8.RuneCount(secret) >= MinSecret && !blank(string(secret))
}

// claimed is what the executor and the result need of claims.
type claimed struct {
	action, resource, actor, request string
}

// claimNames lists every claim, in canonical order.
func claimNames() []string {
	return []string{"action", "actor_id", "choice", "exp", "expected_choice", "nonce", "override_requested",
		"payload", "payload_sha256", "rationale", "request_id", "resource_id", "v"}
}

func readClaims(claims abi.Raw) (claimed, error) {
	var c claimed
	if err := c.decode(claims); err != nil {
		return c, fault.New(fault.Invalid, "claims: %w", err)
	}
	return c, nil
}

func (c *claimed) decode(claims abi.Raw) error {
	if b, err := strictjson.Canonical(nil, claims); err != nil {
		return err
	} else if string(b) != string(claims) {
		return errors.New("expected canonical JSON")
	}
	var names []string
	d := strictjson.NewDecoder(claims)
	err := d.Object(func(name string) (err error) {
		names = append(names, name)
		switch name {
		case "action":
			c.action, err = d.String()
		case "actor_id":
			c.actor, err = d.String()
		case "resource_id":
			c.resource, err = d.String()
		case "request_id":
			c.request, err = d.String()
		case "exp", "v":
			_, err = d.Int()
		default:
			err = d.Skip()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !slices.Equal(names, claimNames()):
		return errors.New("expected exactly the claims of version 1")
	case blank(c.actor) || blank(c.request) || blank(c.action):
		return errors.New("expected an action, an actor and a request")
	}
	return nil
}
