package approval

import (
	"fmt"

	"weir/abi"
	"weir/abi/strictjson"
)

// Outcome is what became of an approved change.
type Outcome struct {
	Committed bool    // the server says that the change is applied
	Unknown   bool    // nobody can say; never together with Committed
	Result    abi.Raw // what the server said, without identities; never nil
}

// What the model is told to do (3.7). It must never turn a refusal, or not
// knowing, into a success.
const (
	nextCommitted = "The change is already applied. Report the outcome."
	nextRefused   = "The change was REFUSED and NOTHING was applied. The record is unchanged. " +
		"Report the refusal and the reason given in result; never say or imply that any change occurred."
	nextUnknown = "It is NOT KNOWN whether the change was applied: the answer of the executing service was lost. " +
		"Tell the user exactly this and ask them to look at the record. " +
		"Never say or imply that the change was applied, and never that it was not."
)

// Result is the tool result of an attempted change (3.7), also for the stream.
// Claims are those that were executed; what they do not say is left empty.
func Result(claims abi.Raw, o Outcome) abi.Raw {
	c, _ := readClaims(claims)
	result, next := o.Result, nextRefused
	if len(result) == 0 {
		result = abi.Raw("null")
	}
	fields := []field{{"approved", true}, {"resource_id", c.resource}, {"action", c.action},
		{"request_id", c.request}, {"committed", o.Committed}}
	switch {
	case o.Unknown:
		fields, next = append(fields, field{"outcome_unknown", true}), nextUnknown
	case o.Committed:
		next = nextCommitted
	}
	return object(append(fields, field{"result", result}, field{"next_step", next})...)
}

// field is one member of an object that this package writes.
type field struct {
	name  string
	value any // string, bool, int64, abi.Raw or nil
}

func object(fields ...field) abi.Raw {
	b := []byte{'{'}
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strictjson.AppendString(b, f.name), ':')
		switch v := f.value.(type) {
		case nil:
			b = append(b, "null"...)
		case string:
			b = strictjson.AppendString(b, v)
		case bool:
			b = strictjson.AppendBool(b, v)
		case int64:
			b = strictjson.AppendInt(b, v)
		case abi.Raw:
			b = append(b, v...)
		default:
			panic(fmt.Sprintf("approval: no JSON for %T", v))
		}
	}
	return append(b, '}')
}

func jsonString(s string) []byte { return strictjson.AppendString(nil, s) }
