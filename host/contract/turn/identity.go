package turn

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"os"
	"path/filepath"
	"regexp"

	"weir/abi/strictjson"
	"weir/host/fault"
)

// Policies about identity_binding.
const (
	IdentityIgnore  = "ignore"
	IdentityVerify  = "verify"
	IdentityRequire = "require"
)

// Identity verifies identity_binding. What is signed is not said upstream; the
// definition is ours (section 5): an Ed25519 signature, in hex or base64, over
// the nonce, or over the nonce, a dot and the run id. It says who made the
// nonce, not that it is new.
type Identity struct {
	Policy string // empty ignores
	Keys   map[string]ed25519.PublicKey
}

// binding is identity_binding as it came.
type binding struct{ id, signature, nonce string }

var errBinding = fault.New(fault.Denied, "identity_binding: expected a signature of a known identity")

// check returns the identity that a request has proved; empty where it need
// prove none.
func (v Identity) check(q *request) (string, error) {
	switch {
	case v.Policy == "" || v.Policy == IdentityIgnore:
		return "", nil
	case q.identity == nil && v.Policy == IdentityVerify:
		return "", nil
	case q.identity == nil || q.identity.nonce == "":
		return "", errBinding
	}
	key, known := v.Keys[q.identity.id]
	signature := decodeSignature(q.identity.signature)
	if !known || len(signature) != ed25519.SignatureSize {
		return "", errBinding
	}
	for _, message := range []string{q.identity.nonce, q.identity.nonce + "." + q.run} {
		if ed25519.Verify(key, []byte(message), signature) {
			return q.identity.id, nil
		}
	}
	return "", errBinding
}

func decodeSignature(text string) []byte {
	if b, err := hex.DecodeString(text); err == nil {
		return b
	}
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if b, err := e.DecodeString(text); err == nil {
			return b
		}
	}
	return nil
}

// readBinding reads an object; its members are compared and never shown.
func readBinding(d *strictjson.Decoder) (*binding, error) {
	raw, err := d.Raw()
	if err != nil {
		return nil, err
	}
	m := members(raw)
	return &binding{id: textOf(m["identity_id"]), signature: textOf(m["signature"]), nonce: textOf(m["nonce"])}, nil
}

var identityName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$`)

// LoadKeys reads <identity_id>/public_key.pem of every folder in a trust root.
func LoadKeys(root string) (map[string]ed25519.PublicKey, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fault.New(fault.Invalid, "trust root: expected a readable folder: %w", err)
	}
	keys := map[string]ed25519.PublicKey{}
	for _, e := range entries {
		if !e.IsDir() || !identityName.MatchString(e.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, e.Name(), "public_key.pem"))
		if os.IsNotExist(err) {
			continue
		}
		key, err := parseKey(data, err)
		if err != nil {
			return nil, fault.New(fault.Invalid, "trust root: identity %s: expected a PEM file of an Ed25519 public key: %w", e.Name(), err)
		}
		keys[e.Name()] = key
	}
	if len(keys) == 0 {
		return nil, fault.New(fault.Invalid, "trust root: expected at least one <identity_id>/public_key.pem")
	}
	return keys, nil
}

func parseKey(data []byte, err error) (ed25519.PublicKey, error) {
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fault.New(fault.Invalid, "no PEM block")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return nil, fault.New(fault.Invalid, "a key of another kind")
	}
	return key, nil
}
