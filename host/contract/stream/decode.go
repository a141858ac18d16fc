package stream

import (
	"strings"
	"unicode/utf8"

	"weir/abi"
	"weir/abi/strictjson"
	"weir/host/fault"
)

// Limits of section 2.1.
const (
	maxMessages   = 200
	maxCharacters = 512 * 1024 // Unicode scalar values of all messages
)

// decodeRequest reads a request body by section 2.1, in its order of checks.
// Errors are of kind Invalid and their texts are the contract's.
func decodeRequest(data []byte) ([]abi.Turn, error) {
	messages, err := parseRequest(data)
	if err != nil {
		return nil, fault.New(fault.Invalid, "invalid workflow request: %w", err)
	}
	if err := checkMessages(messages); err != nil {
		return nil, err
	}
	return messages, nil
}

func checkMessages(messages []abi.Turn) error {
	switch {
	case len(messages) == 0:
		return fault.New(fault.Invalid, "at least one chat message is required")
	case len(messages) > maxMessages:
		return fault.New(fault.Invalid, "too many chat messages; maximum is %d", maxMessages)
	}
	characters := 0
	for _, m := range messages {
		if m.Role != abi.RoleUser && m.Role != abi.RoleAssistant {
			return fault.New(fault.Invalid, "only user and assistant chat roles are accepted")
		}
		if strings.TrimSpace(m.Content) == "" {
			return fault.New(fault.Invalid, "chat messages must not be empty")
		}
		if characters += utf8.RuneCountInString(m.Content); characters > maxCharacters {
			return fault.New(fault.Invalid, "chat history is too large")
		}
	}
	if messages[len(messages)-1].Role != abi.RoleUser {
		return fault.New(fault.Invalid, "the final chat message must have the user role")
	}
	return nil
}

// parseRequest reads the shape only. Unknown fields are refused at both
// levels; the optional ones are checked and ignored.
func parseRequest(data []byte) (messages []abi.Turn, err error) {
	d := strictjson.NewDecoder(data)
	seen := false
	err = d.Object(func(name string) error {
		switch name {
		case "messages":
			seen = true
			return d.Array(func() error {
				m, err := parseMessage(d)
				messages = append(messages, m)
				return err
			})
		case "stream":
			return optional(d, func() error { _, err := d.Bool(); return err })
		case "user", "evaluation_case_id":
			return optional(d, func() error { _, err := d.String(); return err })
		}
		return strictjson.Unknown(name)
	})
	if err == nil {
		err = d.End()
	}
	if err == nil && !seen {
		err = strictjson.Missing("messages")
	}
	return messages, err
}

func parseMessage(d *strictjson.Decoder) (m abi.Turn, err error) {
	role, content := false, false
	err = d.Object(func(name string) (err error) {
		switch name {
		case "role":
			role = true
			m.Role, err = d.String()
		case "content":
			content = true
			m.Content, err = d.String()
		default:
			err = strictjson.Unknown(name)
		}
		return err
	})
	switch {
	case err != nil:
	case !role:
		err = strictjson.Missing("role")
	case !content:
		err = strictjson.Missing("content")
	}
	return m, err
}

// optional reads a value that may be null.
func optional(d *strictjson.Decoder, value func() error) error {
	if d.Null() {
		return nil
	}
	return value()
}

// Trim keeps the last limit messages and starts them on a user's (2.2). The
// last message is a user's, so one is always left.
func Trim(messages []abi.Turn, limit int) []abi.Turn {
	messages = messages[max(0, len(messages)-limit):]
	for messages[0].Role != abi.RoleUser {
		messages = messages[1:]
	}
	return messages
}
