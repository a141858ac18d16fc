package store

import (
	"weir/host/fault"
)

// CheckName reports, as Invalid, what is no name: one or more words of ASCII
// letters, digits, '-' and '_', with dots between them, at most MaxName bytes.
func CheckName(name string) error {
	if len(name) > MaxName {
		return fault.New(fault.Invalid, "store: expected a name of at most %d bytes, found %d", MaxName, len(name))
	}
	last := byte('.')
	for i := range len(name) {
		c := name[i]
		if c == '.' && last == '.' || c != '.' && !word(c) {
			return badName()
		}
		last = c
	}
	if last == '.' {
		return badName()
	}
	return nil
}

func badName() error {
	return fault.New(fault.Invalid, "store: expected a name of letters, digits, '-', '_' and single dots between words")
}

func word(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// CheckAppend reports what is wrong with the arguments of an Append. Every
// backend calls it first.
func CheckAppend(log string, expected int64, id string, records [][]byte) error {
	if err := CheckName(log); err != nil {
		return err
	}
	if err := CheckName(id); err != nil {
		return err
	}
	if expected < 0 {
		return fault.New(fault.Invalid, "store: expected a position from 0 on, found %d", expected)
	}
	if len(records) == 0 {
		return fault.New(fault.Invalid, "store: expected at least one record")
	}
	size := 0
	for _, r := range records {
		size += len(r)
	}
	return CheckSize("an append", size, MaxAppend)
}

// CheckSize reports, as Limit, a size over a limit.
func CheckSize(what string, size, limit int) error {
	if size > limit {
		return fault.New(fault.Limit, "store: expected %s of at most %d bytes, found %d", what, limit, size)
	}
	return nil
}

// CheckDigest reports, as Invalid, what is no digest.
func CheckDigest(digest string) error {
	ok := len(digest) == 64
	for i := 0; ok && i < len(digest); i++ {
		c := digest[i]
		ok = c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
	}
	if !ok {
		return fault.New(fault.Invalid, "store: expected a digest of 64 lower-case hex digits")
	}
	return nil
}
