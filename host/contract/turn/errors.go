package turn

import (
	"weir/abi/strictjson"
	"weir/host/fault"
	"weir/host/run"
)

// status is the contract's table of kinds; no other place in this package knows
// a status.
func status(err error) int {
	switch fault.Of(err) {
	case fault.Invalid:
		return 400
	case fault.Denied:
		return 403
	case fault.Conflict:
		return 409
	case fault.Unavailable:
		return 503
	}
	return 500
}

// refusalText is what a caller reads. Only the texts of kinds in the table are
// meant for it.
func refusalText(err error) string {
	if status(err) == 500 {
		return "internal error"
	}
	return err.Error()
}

// encodeRefusal is the body of an HTTP answer that is no action object.
func encodeRefusal(err error) []byte {
	return append(strictjson.AppendString([]byte(`{"error":`), refusalText(err)), '}')
}

// failureText is the class of a failure; nothing else of one leaves.
func failureText(o outcome) string {
	switch {
	case o.failed && o.failure == run.FailureModel:
		return "The model provider failed to answer."
	case o.failed:
		return "The agent run failed."
	}
	return "The agent run was cancelled."
}
