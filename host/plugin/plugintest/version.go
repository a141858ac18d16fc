package plugintest

import "strings"

// wazeroVersion finds the version of wazero in the text of a go.sum.
func wazeroVersion(sum string) string {
	for line := range strings.Lines(sum) {
		if rest, ok := strings.CutPrefix(line, "github.com/tetratelabs/wazero "); ok {
			version, _, _ := strings.Cut(rest, " ")
			return strings.TrimSuffix(version, "/go.mod")
		}
	}
	return "unknown"
}
