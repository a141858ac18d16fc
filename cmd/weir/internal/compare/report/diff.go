package report

import (
	"strings"
	"unicode"
)

// word is a word or the white space between two, and whether the other answer
// lacks it there.
type word struct {
	Text    string
	Differs bool
}

// maxWords bounds the comparison, whose time grows with the product.
const maxWords = 3000

// diff marks in each text the words that are not part of the longest common
// row of words. Texts that are too long come back unmarked.
func diff(a, b string) (x, y []word) {
	x, y = split(a), split(b)
	if len(x) > maxWords || len(y) > maxWords || a == "" || b == "" {
		return x, y
	}
	// common[i][j] is the length of the longest common row of x[i:] and y[j:].
	common := make([][]int32, len(x)+1)
	for i := range common {
		common[i] = make([]int32, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i].Text == y[j].Text {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(x) && j < len(y) {
		switch {
		case x[i].Text == y[j].Text:
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			x[i].Differs = true
			i++
		default:
			y[j].Differs = true
			j++
		}
	}
	for ; i < len(x); i++ {
		x[i].Differs = true
	}
	for ; j < len(y); j++ {
		y[j].Differs = true
	}
	return x, y
}

// split cuts a text after every word and every row of white space; put together
// again the parts are the text.
func split(text string) []word {
	var words []word
	for text != "" {
		n := strings.IndexFunc(text, unicode.IsSpace)
		if n == 0 {
			n = strings.IndexFunc(text, func(r rune) bool { return !unicode.IsSpace(r) })
		}
		if n < 0 {
			n = len(text)
		}
		words = append(words, word{Text: text[:n]})
		text = text[n:]
	}
	return words
}
