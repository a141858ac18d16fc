package model

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// FAULTS S1: a text that is cut by UTF-16, at every place and everywhere, with
// every unit written as an escape.
func FuzzUTF16(f *testing.F) {
	f.Add("a😀b")
	f.Add("\U0010F83D\U0010FE00😀😀")
	f.Add("\\ud83d \\\\ \" é")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || len(text) > 64 {
			t.Skip()
		}
		units := utf16.Encode([]rune(text))
		send := func(ends ...int) {
			t.Helper()
			a, from := assembly{limit: 1 << 20}, 0
			var got strings.Builder
			onText := func(s string) { got.WriteString(s) }
			for _, end := range append(ends, len(units)) {
				var escapes strings.Builder
				for _, u := range units[from:end] {
					fmt.Fprintf(&escapes, `\u%04x`, u)
				}
				if err := a.event("", content(escapes.String()), onText); err != nil {
					t.Fatal(err)
				}
				from = end
			}
			reply, err := a.end(true, onText)
			// A private character beside a half is taken for one.
			lossy := strings.ContainsFunc(text, func(r rune) bool { return r >= marks })
			if err != nil || reply.Text != got.String() || !lossy && reply.Text != text {
				t.Fatalf("%q cut at %v: %q, shown %q, %v", text, ends, reply.Text, got.String(), err)
			}
		}
		var each []int
		for i := range units {
			send(i)
			each = append(each, i)
		}
		send(each...)
	})
}
