// Package approvaltest makes approval tokens for tests and for fakes of an
// agent, independently of the code that checks them.
package approvaltest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
)

// Claims returns the thirteen claims of 4.3 for a change of TKT-1001 from
// medium to high that is valid for ten minutes from now on.
func Claims(now time.Time, nonce string) map[string]any {
	c := map[string]any{
		"v": 1, "exp": now.Unix() + 600, "action": "set_ticket_priority", "resource_id": "TKT-1001",
		"actor_id": "support-rep-1", "request_id": "11111111-1111-4111-8111-111111111111", "nonce": nonce,
		"choice": "high", "expected_choice": "medium", "override_requested": true,
		"rationale": "Customer has followed up twice.",
	}
	SetPayload(c, map[string]any{"note": "Escalated after the second follow-up."})
	return c
}

// SetPayload puts a payload with its digest among the claims.
func SetPayload(claims map[string]any, payload any) {
	claims["payload"] = payload
	claims["payload_sha256"] = nil
	if payload != nil {
		sum := sha256.Sum256(Canonical(payload))
		claims["payload_sha256"] = hex.EncodeToString(sum[:])
	}
}

// Canonical is 4.2 for what encoding/json can write: it sorts names, and what
// it escapes too much is put back. It panics on what does not marshal.
func Canonical(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("approvaltest: " + err.Error())
	}
	// An escaped backslash before the u is no escape of a separator; hidden
	// behind a byte that JSON text cannot hold.
	text := strings.TrimSuffix(b.String(), "\n")
	text = strings.ReplaceAll(text, `\\`, "\x00")
	text = strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(text)
	return []byte(strings.ReplaceAll(text, "\x00", `\\`))
}

// Mint signs claims.
func Mint(secret string, claims map[string]any) string { return Sign(secret, Canonical(claims)) }

// Sign signs any bytes as if they were claims.
func Sign(secret string, payload []byte) string {
	return Join(secret, base64.RawURLEncoding.EncodeToString(payload))
}

// Join signs a first part that is already encoded, or that is none.
func Join(secret, first string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(first))
	return first + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
