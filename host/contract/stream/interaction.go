package stream

import (
	"github.com/google/uuid"

	"weir/host/fault"
)

// maxResponse is the largest body of a person's answer, in bytes (3.2).
const maxResponse = 16384

// checkResponse holds the parts of an answer's address and its size against
// checks 2 and 3 of section 3.2. Forms of an id other than the one that we give
// are ids too; they name nothing.
func checkResponse(execution, interaction string, body []byte) error {
	switch {
	case uuid.Validate(execution) != nil:
		return fault.New(fault.Invalid, "invalid execution ID")
	case uuid.Validate(interaction) != nil:
		return fault.New(fault.Invalid, "invalid interaction ID")
	case len(body) > maxResponse:
		return fault.New(fault.Invalid, "interaction response is too large")
	}
	return nil
}
