package run

import (
	"strconv"
	"unicode/utf8"

	"weir/abi"
	"weir/abi/strictjson"
)

// Principal is who a run acts for. UserID is compared as it came and never
// leaves the host: logs and spans carry Pseudonym, plugins carry neither.
type Principal struct {
	UserID    string
	Username  string
	Roles     []string
	Pseudonym string // UUIDv5 of UserID
}

// Where a request id came from.
const (
	SourceGateway   = "gateway"
	SourceGenerated = "generated"
)

// Request starts a run.
type Request struct {
	Principal       Principal
	RequestID       string
	RequestIDSource string // SourceGateway or SourceGenerated
	Contract        string // the wire contract that it came by
	RunID           string // UUIDv4, chosen by the contract, never used twice
	Turns           []abi.Turn
	Traceparent     string // W3C, as it came; empty without one
	// Variant is the one in which the request's session has begun, which it
	// keeps while there is one of that name. Empty: the pseudonym decides.
	Variant string
	// Caller says that the caller performs the tools; nil: the host does.
	Caller *Caller
}

// latest returns the user turn that the run answers; a contract admits no
// request without one.
func (r *Request) latest() string { return r.Turns[len(r.Turns)-1].Content }

// questionInput is the input of the input guards' decision event: which text
// was judged, without the text.
func questionInput(text string) abi.Raw {
	b := append([]byte(`{"user_message_sha256":`), '"')
	b = append(b, digest([]byte(text))...)
	b = append(b, `","user_message_length":`...)
	b = strconv.AppendInt(b, int64(utf8.RuneCountInString(text)), 10)
	return append(b, '}')
}

// jsonString returns s as a JSON value.
func jsonString(s string) abi.Raw { return strictjson.AppendString(nil, s) }
