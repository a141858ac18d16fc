package guard

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"weir/abi"
)

// displayMask replaces every occurrence of a literal in every text.
func displayMask(literal, replace string) OutputChecker {
	return outputFunc(func(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		r := &abi.CheckOutputReply{}
		for i, text := range q.Texts {
			for at := 0; ; {
				n := strings.Index(text[at:], literal)
				if n < 0 {
					break
				}
				r.Edits = append(r.Edits, abi.Edit{Index: i, Start: at + n, End: at + n + len(literal), Replace: replace, Label: "X"})
				at += n + len(literal)
			}
		}
		return r, nil
	})
}

// 6.10: every string value, not keys, order and number text kept.
func TestDisplay(t *testing.T) {
	chain := must(New([]Guard{
		{Name: "secrets", Output: displayMask("sekrit", "[REDACTED]")},
		{Name: "pii", Output: displayMask("rit Bob", "<PERSON>")},
	}, Options{}))
	s := chain.Session(SessionOptions{Stamp: stamp})
	for _, c := range []struct{ in, want string }{
		{`"a sekrit"`, `"a [REDACTED]"`},
		{`{"z":"sekrit sekrit","a":["rit Bob",{"sekrit":"x"}],"n":1.50e+02,"big":12345678901234567890,"t":true,"f":false,"u":null}`,
			`{"z":"[REDACTED] [REDACTED]","a":["<PERSON>",{"sekrit":"x"}],"n":1.50e+02,"big":12345678901234567890,"t":true,"f":false,"u":null}`},
		{`["sekrit Bob"]`, `["[REDACTED] Bob"]`}, // the same raw text for both, the first start is kept
		{`["sek\u0072it", "\ud83d\ude00é"]`, `["[REDACTED]","😀é"]`},
		{`{}`, `{}`}, {`[]`, `[]`}, {` [ 1 , 2 ] `, `[1,2]`}, {`[[],{},""]`, `[[],{},""]`},
		{`7`, `7`}, {`"` + "\u2028" + `"`, `"\u2028"`},
		{``, withheld}, {`{"a":`, withheld}, {`1 2`, withheld}, {`{"a":1,"a":2}`, withheld}, {`"\ud800"`, withheld},
	} {
		if got := string(s.Display(t.Context(), abi.Raw(c.in))); got != c.want {
			t.Errorf("Display(%s) = %s, want %s", c.in, got, c.want)
		}
	}
}

// One call per guard and value, with all its strings in order.
func TestDisplayCallsOnce(t *testing.T) {
	var calls []*abi.CheckOutputRequest
	g := Guard{Name: "g", Output: outputFunc(func(_ context.Context, q *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
		calls = append(calls, q)
		return &abi.CheckOutputReply{}, nil
	})}
	s := must(New([]Guard{g}, Options{})).Session(SessionOptions{Stamp: stamp})
	s.Display(t.Context(), abi.Raw(`{"a":"1","b":[2,"3",{"c":"4"}]}`))
	s.Display(t.Context(), abi.Raw(`[1,2]`))
	if len(calls) != 1 || calls[0].Use != abi.UseDisplay || strings.Join(calls[0].Texts, "") != "134" || calls[0].Call != stamp() {
		t.Errorf("calls %+v", calls)
	}
}

// A failure withholds the whole value, whatever the guard's policy.
func TestDisplayFailsClosed(t *testing.T) {
	edit := func(e abi.Edit) *abi.CheckOutputReply { return &abi.CheckOutputReply{Edits: []abi.Edit{e}} }
	for _, c := range []struct {
		name  string
		reply *abi.CheckOutputReply
		err   error
	}{
		{"error", nil, errors.New("no")},
		{"no reply", nil, nil},
		{"index", edit(abi.Edit{Index: 2, End: 1, Label: "X"}), nil},
		{"negative index", edit(abi.Edit{Index: -1, End: 1, Label: "X"}), nil},
		{"behind the text", edit(abi.Edit{End: 99, Label: "X"}), nil},
		{"inside a character", edit(abi.Edit{End: 1, Label: "X"}), nil},
		{"label", edit(abi.Edit{End: 2, Label: "x y"}), nil},
		{"cut", &abi.CheckOutputReply{Cut: &abi.Cut{Label: "secret:0"}}, nil},
		{"hold_from", &abi.CheckOutputReply{HoldFrom: 1}, nil},
		{"state", &abi.CheckOutputReply{State: abi.Raw(`1`)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &recorder{}
			s := must(New([]Guard{
				{Name: "good", Output: displayMask("z", "Z")},
				{Name: "bad", AllowOnError: true, Output: outputFunc(func(context.Context, *abi.CheckOutputRequest) (*abi.CheckOutputReply, error) {
					return c.reply, c.err
				})},
			}, Options{})).Session(SessionOptions{Stamp: stamp, Observer: r})
			if got := string(s.Display(t.Context(), abi.Raw(`["é","z"]`))); got != withheld {
				t.Errorf("Display = %s", got)
			}
			if len(r.verdicts) != 2 || r.verdicts[1].Err == nil || r.verdicts[1].Verdict != VerdictError {
				t.Errorf("verdicts %+v", r.verdicts)
			}
		})
	}
}

// What Display returns is JSON, and without guards it is the same value.
func FuzzDisplay(f *testing.F) {
	f.Add(`{"a":["sekrit",1.0,null],"b":{"c":"é\n"}}`)
	f.Add(`"\ud83d\ude00"`)
	f.Fuzz(func(t *testing.T, value string) {
		plain := must(New(nil, Options{})).Session(SessionOptions{Stamp: stamp}).Display(t.Context(), abi.Raw(value))
		masked := must(New([]Guard{{Name: "g", Output: displayMask("e", "*")}}, Options{})).Session(SessionOptions{Stamp: stamp}).Display(t.Context(), abi.Raw(value))
		for _, out := range []abi.Raw{plain, masked} {
			if !json.Valid(out) {
				t.Fatalf("Display(%q) = %q, which is no JSON", value, out)
			}
		}
		if string(plain) == withheld {
			return
		}
		if a, b := reread(t, value), reread(t, string(plain)); a != b {
			t.Errorf("Display(%q) = %q", value, plain)
		}
	})
}

// reread returns what encoding/json makes of a value, numbers as their text.
func reread(t *testing.T, value string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("Display took %q: %v", value, err)
	}
	return string(must(json.Marshal(v)))
}
