package trial

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode"
)

// Chunking is a way to cut a text into pieces.
type Chunking struct {
	size   int    // bytes; 0: another way
	words  bool   // a word with the white space behind it
	seed   uint64 // of random lengths, when random
	random bool
}

// ParseChunking reads "each" (one character), "words", "whole", "random:SEED" or a
// number of characters.
func ParseChunking(text string) (Chunking, error) {
	switch text {
	case "each":
		return Chunking{size: 1}, nil
	case "words":
		return Chunking{words: true}, nil
	case "whole":
		return Chunking{}, nil
	}
	if seed, ok := strings.CutPrefix(text, "random:"); ok {
		n, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			return Chunking{}, errors.New("expected random:SEED with a number")
		}
		return Chunking{random: true, seed: n}, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return Chunking{}, errors.New("expected each, words, whole, random:SEED or a number of characters")
	}
	return Chunking{size: n}, nil
}

// maxRandom is the longest random piece, in bytes; many are shorter than a
// pattern and some are longer.
const maxRandom = 24

// Cut returns the pieces of text. Random ones are cut between any two bytes, also
// inside a character; all others between characters.
func (c Chunking) Cut(text string) []string {
	switch {
	case c.words:
		return words(text)
	case c.random:
		return Random(rand.New(rand.NewPCG(c.seed, 0)), text)
	case c.size > 0:
		return runs(text, c.size)
	case text == "":
		return nil
	}
	return []string{text}
}

// Random cuts text into pieces of random lengths.
func Random(r *rand.Rand, text string) []string {
	var pieces []string
	for text != "" {
		n := min(len(text), 1+r.IntN(maxRandom))
		pieces = append(pieces, text[:n])
		text = text[n:]
	}
	return pieces
}

// runs cuts text into pieces of n characters.
func runs(text string, n int) []string {
	var pieces []string
	start, count := 0, 0
	for i := range text {
		if count == n {
			pieces = append(pieces, text[start:i])
			start, count = i, 0
		}
		count++
	}
	if start < len(text) {
		pieces = append(pieces, text[start:])
	}
	return pieces
}

func words(text string) []string {
	var pieces []string
	start, space := 0, false
	for i, r := range text {
		if space && !unicode.IsSpace(r) {
			pieces = append(pieces, text[start:i])
			start = i
		}
		space = unicode.IsSpace(r)
	}
	if start < len(text) {
		pieces = append(pieces, text[start:])
	}
	return pieces
}
