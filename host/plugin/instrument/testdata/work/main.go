//go:build wasip1

// Command work is a guest that does what guardrails written in Go do: it
// decodes JSON, searches with regular expressions, sorts and hashes.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"regexp"
	"sort"
	"strings"
)

type message struct {
	Role, Content string
	Tags          map[string]int
}

var (
	request  = []byte(`[` + strings.Repeat(`{"Role":"user","Content":"my mail is \"someone@example.org\", call +49 30 1234567","Tags":{"a":1,"b":22}},`, 7) + `{"Role":"system"}]`)
	patterns = []*regexp.Regexp{
		regexp.MustCompile(`[a-z.]+@[a-z.]+\.[a-z]{2,}`),
		regexp.MustCompile(`\+?\d[\d ]{6,}`),
		regexp.MustCompile(`(?i)ignore (all|previous) instructions`),
	}
)

//go:wasmexport decode
func decode() int32 {
	var messages []message
	if err := json.Unmarshal(request, &messages); err != nil {
		panic(err)
	}
	return int32(len(messages))
}

//go:wasmexport search
func search() int32 {
	found := 0
	for _, p := range patterns {
		found += len(p.FindAllIndex(request, -1))
	}
	return int32(found)
}

//go:wasmexport order
func order() int32 {
	words := strings.FieldsFunc(string(request), func(r rune) bool { return r < 'a' || r > 'z' })
	count := map[string]int{}
	for _, w := range words {
		count[w]++
	}
	sort.Strings(words)
	return int32(len(count)) + int32(words[len(words)/2][0])
}

//go:wasmexport hash
func hash() int32 {
	sum := sha256.Sum256(request)
	for range 50 {
		sum = sha256.Sum256(sum[:])
	}
	return int32(sum[0])
}

func main() {}
