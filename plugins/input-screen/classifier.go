package main

import (
	"strings"

	"weir/abi"
	"weir/pdk/match"
)

// vote is what the classifier said of a turn.
type vote struct {
	block     bool
	available bool // it answered; when it did not, block is true
}

func voteOf(r *abi.AskReply) vote {
	if r.Failed != "" {
		return vote{block: true}
	}
	return vote{block: !safe(r.Text), available: true}
}

// safe reads a classifier's reply exactly as the contract's other runtimes do
// (6.5), their hazards included: "Not safe" is safe, because only its first
// two words are looked at, and for "safe" first.
func safe(reply string) bool {
	words := firstWords(strings.TrimSpace(strings.ToLower(reply)), 2)
	for _, known := range [...]struct {
		word string
		safe bool
	}{{"safe", true}, {"unsafe", false}, {"yes", false}, {"no", true}} {
		for _, w := range words {
			if w == known.word {
				return known.safe
			}
		}
	}
	return false
}

// firstWords splits s at runs of what is no word character. Such a run at the
// beginning leaves an empty first word, which counts.
func firstWords(s string, most int) []string {
	var words []string
	for len(words) < most {
		i := strings.IndexFunc(s, func(r rune) bool { return !match.IsWord(r) })
		if i < 0 {
			return append(words, s)
		}
		words = append(words, s[:i])
		s = strings.TrimLeftFunc(s[i:], func(r rune) bool { return !match.IsWord(r) })
	}
	return words
}
