package stream

import (
	"weir/abi/strictjson"
	"weir/host/fault"
	"weir/host/run"
)

// status is the contract's table of kinds (1.3); no other place in this
// package knows a status of a refusal.
func status(err error) int {
	switch code := fault.CodeOf(err); {
	case code == codeWrongKind || code == codeNotOffered:
		return 422
	}
	switch fault.Of(err) {
	case fault.Invalid:
		return 400
	case fault.Denied:
		return 403
	case fault.NotFound:
		return 404
	case fault.Conflict:
		return 409
	case fault.Gone:
		return 410
	case fault.Unavailable:
		return 503
	}
	return 500
}

// Codes of answers that the open prompt does not take.
const (
	codeWrongKind  = "wrong_kind"
	codeNotOffered = "not_offered"
)

// errCapacity refuses a run before its stream opens.
var errCapacity = fault.Coded(fault.Unavailable, "capacity", "the agent is at capacity")

// encodeRefusal returns the body of an answer that is no stream. Only the
// texts of kinds in the table are meant for clients.
func encodeRefusal(err error) []byte {
	text := "internal error"
	if status(err) != 500 {
		text = err.Error()
	}
	return append(strictjson.AppendString([]byte(`{"error":`), text), '}')
}

// failureText is the class that an error block shows (2.9). No other text of a
// failure reaches a client, and none of these contains "data:".
func failureText(f run.Failure) string {
	if f == run.FailureModel {
		return "The model provider failed to answer."
	}
	return "The agent run failed."
}
