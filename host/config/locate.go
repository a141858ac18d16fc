package config

import (
	"bytes"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// maxStatement bounds the lines of one statement that positions looks at, so
// that a broken file costs little.
const maxStatement = 500

// positions returns the line, counted from 1, of the first mention of every
// table and key of a valid document. The library keeps no positions, so this
// reads statement by statement: the fewest lines that are a document of their
// own. Only errors pay for it.
func positions(data []byte) map[string]int {
	found := map[string]int{}
	lines := bytes.SplitAfter(data, []byte("\n"))
	var header toml.Key
	for from := 0; from < len(lines); {
		meta, n := statement(lines[from:])
		if n == 0 {
			break
		}
		for _, key := range meta.Keys() {
			path := key
			if isHeader(lines[from]) {
				header = key
			} else {
				path = append(slices.Clip(header), key...)
			}
			for i := range path {
				if id := keyID(path[:i+1]); found[id] == 0 {
					found[id] = from + 1
				}
			}
		}
		from += n
	}
	return found
}

// statement reads the statement that begins with the first of lines, and tells
// how many lines it has, 0 if it has too many.
func statement(lines [][]byte) (toml.MetaData, int) {
	var text strings.Builder
	for n := range min(len(lines), maxStatement) {
		text.Write(lines[n])
		tree := map[string]any{}
		if meta, err := toml.Decode(text.String(), &tree); err == nil {
			return meta, n + 1
		}
	}
	return toml.MetaData{}, 0
}

func isHeader(line []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("[")) }

// nearest is the known key that differs from name in letter case, in - against
// _, or by one letter; "" if there is none.
func nearest(name string, fields map[string][]int) string {
	plain := strings.ReplaceAll(strings.ToLower(name), "-", "_")
	best := ""
	for known := range fields {
		if known == plain {
			return known
		}
		if oneEdit(known, plain) && (best == "" || known < best) {
			best = known
		}
	}
	return best
}

// oneEdit tells whether a becomes b by adding, dropping, changing or swapping
// one letter.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if i == len(a) || a[i+1:] == b[i+1:] {
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
