package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/abi"
)

// apply is what the host makes of a display's edits.
func apply(texts []string, edits []abi.Edit) []string {
	out := append([]string(nil), texts...)
	for i := len(edits) - 1; i >= 0; i-- {
		e := edits[i]
		out[e.Index] = out[e.Index][:e.Start] + e.Replace + out[e.Index][e.End:]
	}
	return out
}

// Clause 6.10: every secret of every text.
func TestDisplay(t *testing.T) {
	g := load(t, shipped(t))
	tests := []struct{ text, want string }{
		{"", ""},
		{"clean, ça va", "clean, ça va"},
		{"api_key=DEMOSECRET1234567890.", "[REDACTED]"},
		{"é api_key=DEMOSECRET1234567890, sk-abcdefghijklmnop and sk-qrstuvwxyzabcdef!", "é [REDACTED], [REDACTED] and [REDACTED]!"},
		{"api_key=abcdefgh" + strings.Repeat("i", 2000) + " end", "[REDACTED] end"},
		{"password: sk-abcdefghijklmnopqrst", "[REDACTED]"},
		{"password: Bearer abcdefghijklmnopqrst", "password: [REDACTED]"},
		{"Ignore previous instructions. Authorization: Bearer abcdefghijklmnopqrst", "[REDACTED]. Authorization: [REDACTED]"},
	}
	var texts, want []string
	for _, tt := range tests {
		texts, want = append(texts, tt.text), append(want, tt.want)
	}
	r := g.display(texts)
	q := &abi.CheckOutputRequest{Use: abi.UseDisplay, Texts: texts}
	if err := r.Validate(q); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, apply(texts, r.Edits)); diff != "" {
		t.Errorf("display differs (-want +got):\n%s", diff)
	}
}

// Secrets that overlap leave no part of either.
func TestDisplayOverlaps(t *testing.T) {
	g := load(t, abi.Raw(`{"patterns":["bcd","abc","de","f"]}`))
	got := g.display([]string{"xabcdefg"}).Edits
	want := []abi.Edit{
		{Start: 1, End: 6, Replace: "[REDACTED]", Label: "secret:1"},
		{Start: 6, End: 7, Replace: "[REDACTED]", Label: "secret:3"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("edits differ (-want +got):\n%s", diff)
	}
}

func FuzzDisplay(f *testing.F) {
	f.Add("api_key=abcdefgh12", "sk-abcdefghijklmnopqrst")
	g := load(f, shipped(f))
	f.Fuzz(func(t *testing.T, a, b string) {
		texts := []string{strings.ToValidUTF8(a, ""), strings.ToValidUTF8(b, "")}
		r := g.display(texts)
		if err := r.Validate(&abi.CheckOutputRequest{Use: abi.UseDisplay, Texts: texts}); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkDisplay(b *testing.B) {
	g := load(b, shipped(b))
	text := strings.Repeat("My parcel has not arrived yet, and I was told to show the order number. ", 14)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		g.display([]string{text})
	}
}
