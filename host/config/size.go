package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes, written in agent.toml as "64MiB", "512KiB" or
// "4096B".
type Size int64

// Units of [Size].
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
)

var errSize = errors.New(`expected a size such as "64MiB"`)

// ParseSize reads a whole number with one of the units B, KiB, MiB and GiB.
func ParseSize(text string) (Size, error) {
	for _, u := range [...]struct {
		suffix string
		size   Size
	}{{"KiB", KiB}, {"MiB", MiB}, {"GiB", GiB}, {"B", 1}} {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n > math.MaxInt64/uint64(u.size) {
			return 0, errSize
		}
		return Size(n) * u.size, nil
	}
	return 0, errSize
}

// String is the shortest text that ParseSize reads back.
func (s Size) String() string {
	for _, u := range [...]struct {
		suffix string
		size   Size
	}{{"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}} {
		if s >= u.size && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}
