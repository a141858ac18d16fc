package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"weir/abi/strictjson"
)

// Digest identifies what a server says a tool is: its name, its own description
// (not an override), its schema in canonical form and whether it is read-only.
// A tool whose digest differs from the one that an operator looked at is another
// tool, also under the same name. 64 hex digits.
func Digest(t Tool) string {
	b := strictjson.AppendString([]byte(`{"description":`), t.Published)
	b = strictjson.AppendString(append(b, `,"name":`...), t.Name)
	b = strconv.AppendBool(append(b, `,"read_only":`...), t.ReadOnly)
	b = append(b, `,"schema":`...)
	if canonical, err := strictjson.Canonical(b, t.Schema); err == nil {
		b = canonical
	} else { // no JSON, or a number without a canonical form: the bytes decide
		b = append(b, t.Schema...)
	}
	sum := sha256.Sum256(append(b, '}'))
	return hex.EncodeToString(sum[:])
}
