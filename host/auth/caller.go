package auth

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/google/uuid"
)

// Namespace is the UUID namespace of pseudonyms. It is weir's own and fixed for
// ever: another value would give every user another pseudonym.
const Namespace = "a71c08cc-71a6-44ca-b8ad-64fe2c6ea9ac"

// Caller is who a request acts for. Only [Authenticator.Authenticate] makes
// one. However it is printed, the user id stays out.
type Caller struct {
	userID    string
	username  string
	roles     []string
	requestID string
	generated bool
}

// UserID is the identity exactly as the header gave it, trimmed.
func (c Caller) UserID() string { return c.userID }

// Username is for display and may be empty.
func (c Caller) Username() string { return c.username }

// Roles are at most 64 role names. The caller must not change the slice.
func (c Caller) Roles() []string { return c.roles }

// RequestID is the gateway's id, or a UUIDv4 of ours if it sent none.
func (c Caller) RequestID() string { return c.requestID }

// Generated reports whether the request id is ours, so that it names no
// request of the gateway and nothing may be bound to it.
func (c Caller) Generated() bool { return c.generated }

// Pseudonym is the UUIDv5 that stands for the user in logs and spans.
func (c Caller) Pseudonym() string { return Pseudonym(c.userID) }

// Pseudonym returns the pseudonym of a user id.
func Pseudonym(userID string) string {
	name := "trusted-header:" + HeaderUserID + "\x1f" + userID
	return uuid.NewSHA1(uuid.MustParse(Namespace), []byte(name)).String()
}

// String names the caller without the user.
func (c Caller) String() string {
	return "caller [redacted] of request " + c.requestID
}

// Format implements fmt.Formatter, so no verb prints the fields.
func (c Caller) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// LogValue keeps a structured log from printing the fields.
func (c Caller) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("user_id", "[redacted]"),
		slog.Any("roles", c.roles),
		slog.String("request_id", c.requestID),
	)
}
