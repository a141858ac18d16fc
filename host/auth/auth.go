// Package auth decides who is asking: first the service key, which says that
// the request comes from the gateway, then the identity headers, which say for
// whom the gateway asks. Order, rules and texts are those of section 1.2 of
// the agent-service contract. Nothing here percent-decodes: an identity is the
// header's value as it came.
package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"github.com/google/uuid"

	"weir/host/fault"
)

// Authenticator checks requests against one service key. It is safe for
// concurrent use.
type Authenticator struct {
	want [sha256.Size]byte // digest of the whole header value
}

// Header is the part of a request's head that authentication reads. Names are
// case-insensitive. It is implemented by http.Header.
type Header interface {
	// Values returns every value of a name, in order. The strings stay valid.
	Values(name string) []string
	// Del removes every value of a name.
	Del(name string)
}

// Headers that carry identity; all other headers are ignored.
const (
	HeaderUserID    = "x-authenticated-user-id"
	HeaderUsername  = "x-authenticated-username"
	HeaderRoles     = "x-authenticated-roles"
	HeaderRequestID = "x-request-id"
)

// Codes of the refusals, for the one place that maps them to the wire.
const (
	CodeKey       = "key"
	CodeIdentity  = "identity"
	CodeRequestID = "request_id"
)

// Bounds of section 1.2.
const (
	maxValue     = 256 // characters of any identity header
	maxRequestID = 128 // bytes
	maxRoles     = 64  // roles that are kept
)

// New returns an Authenticator for a service key, which is trimmed. A blank
// key is refused.
func New(key string) (*Authenticator, error) {
	key = strings.TrimSpace(key)
	if key == "" {
		return nil, fault.New(fault.Invalid, "service key: expected a key, got none")
	}
	return &Authenticator{want: sha256.Sum256([]byte("Bearer " + key))}, nil
}

// Authenticate returns the caller or a refusal of kind Unauthenticated (codes
// [CodeKey] and [CodeIdentity]) or Invalid ([CodeRequestID]). A refusal's text
// is fixed, so it may be sent as it is. Once the key was accepted, h has no
// Authorization header any more.
func (a *Authenticator) Authenticate(h Header) (Caller, error) {
	if !a.keyed(h) {
		return Caller{}, fault.Coded(fault.Unauthenticated, CodeKey, "invalid or missing internal API key")
	}
	h.Del("Authorization")
	c, ok := identify(h)
	if !ok {
		return Caller{}, fault.Coded(fault.Unauthenticated, CodeIdentity, "missing or ambiguous authenticated identity")
	}
	if c.requestID, c.generated, ok = requestID(h); !ok {
		return Caller{}, fault.Coded(fault.Invalid, CodeRequestID, "invalid x-request-id")
	}
	return c, nil
}

// keyed compares digests, so the time says nothing of the key or its length.
func (a *Authenticator) keyed(h Header) bool {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return false
	}
	got := sha256.Sum256([]byte(values[0]))
	return subtle.ConstantTimeCompare(got[:], a.want[:]) == 1
}

func identify(h Header) (Caller, bool) {
	user, ok := single(h, HeaderUserID)
	// A proxy may join repeated headers to a list, and then nobody can tell two
	// identities from one.
	if !ok || user == "" || strings.Contains(user, ",") {
		return Caller{}, false
	}
	name, ok := single(h, HeaderUsername)
	if !ok {
		return Caller{}, false
	}
	roles, ok := single(h, HeaderRoles)
	if !ok {
		return Caller{}, false
	}
	return Caller{userID: user, username: name, roles: splitRoles(roles)}, true
}

// single returns the one value of a header, trimmed; absent and blank are "".
// It reports false for a repeated or malformed header.
func single(h Header, name string) (string, bool) {
	values := h.Values(name)
	switch len(values) {
	case 0:
		return "", true
	case 1:
		return clean(values[0])
	}
	return "", false
}

// clean trims a value and reports whether it is at most 256 characters of
// visible ASCII and spaces.
func clean(value string) (string, bool) {
	value = strings.Trim(value, " \t")
	if len(value) > maxValue {
		return "", false
	}
	for i := range len(value) {
		if value[i] < 0x20 || value[i] > 0x7E {
			return "", false
		}
	}
	return value, true
}

func splitRoles(value string) []string {
	var roles []string
	for role := range strings.SplitSeq(value, ",") {
		if role = strings.TrimSpace(role); role != "" && len(roles) < maxRoles {
			roles = append(roles, role)
		}
	}
	return roles
}

func requestID(h Header) (id string, generated, ok bool) {
	id, ok = single(h, HeaderRequestID)
	if !ok || len(id) > maxRequestID || strings.Contains(id, " ") {
		return "", false, false
	}
	if id == "" {
		return uuid.NewString(), true, true
	}
	return id, false, true
}
