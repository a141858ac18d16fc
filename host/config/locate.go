package config

import (
	"bytes"
	"strings"

	"github.com/BurntSushi/toml"
)

// locate returns the line, counted from 1, where a key of a valid document
// begins, and 0 if it has no such key. The library keeps no positions, so this
// looks for the shortest run of whole lines that is a document of its own and
// has the key: the key begins after the document before it. Only errors pay
// for that.
func locate(data []byte, path []string) int {
	begin := 1
	for n, end := 1, 0; end < len(data); n++ {
		next := bytes.IndexByte(data[end:], '\n')
		if next < 0 {
			end = len(data)
		} else {
			end += next + 1
		}
		var tree map[string]any
		meta, err := toml.Decode(string(data[:end]), &tree)
		if err != nil {
			continue
		}
		if meta.IsDefined(path...) {
			return begin
		}
		begin = n + 1
	}
	return 0
}

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
