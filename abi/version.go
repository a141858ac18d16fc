package abi

import (
	"errors"
	"strconv"
	"strings"
)

// VersionOf returns the version that a module speaks, by the names of its
// exports. Exactly one marker of this version is no error; the error for
// anything else says what the module has and what this host speaks.
func VersionOf(exports []string) (int, error) {
	marker := ""
	for _, name := range exports {
		if !strings.HasPrefix(name, MarkerPrefix) {
			continue
		}
		if marker != "" {
			return 0, errors.New("exports both " + marker + " and " + name + ", expected exactly one ABI marker")
		}
		marker = name
	}
	if marker == "" {
		return 0, errors.New("no export " + ExportMarker + ": not a weir plugin")
	}
	text := marker[len(MarkerPrefix):]
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || strconv.Itoa(n) != text {
		return 0, errors.New("export " + strconv.Quote(capped(marker)) + " names no ABI version, expected " + ExportMarker)
	}
	if n != Version {
		return n, errors.New("the module speaks ABI version " + text + ", this host speaks version " + strconv.Itoa(Version))
	}
	return n, nil
}

// capped cuts text of a guest to what an error may quote.
func capped(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
