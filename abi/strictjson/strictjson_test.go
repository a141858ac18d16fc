package strictjson_test

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/abi/strictjson"
)

// Each text is refused by RFC 8259 or by the strictness of the contract, 14.1;
// good is the nearest text that is accepted.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct{ bad, good, err string }{
		{``, `0`, "offset 0: unexpected end, expected a value"},
		{` `, ` 0`, "offset 1: unexpected end, expected a value"},
		{"\ufeff{}", `{}`, "offset 0: expected a value"},
		{"\v1", "\t1", "offset 0: expected a value"},
		{`nul`, `null`, "offset 0: expected a value"},
		{`True`, `true`, "offset 0: expected a value"},
		{`truex`, `true `, "offset 4: unexpected data after the value"},
		{`{} {}`, `{}`, "offset 3: unexpected data after the value"},
		{`{}` + "\x00", "{}\n", "offset 2: unexpected data after the value"},
		{`[1,]`, `[1]`, "offset 3: expected another value after ','"},
		{`[,1]`, `[1]`, "offset 1: expected a value"},
		{`[1 2]`, `[1, 2]`, "offset 3: expected ',' or ']'"},
		{`[1}`, `[1]`, "offset 2: expected ',' or ']'"},
		{`[1`, `[1]`, "offset 2: unexpected end, expected ',' or ']'"},
		{`{"a":1,}`, `{"a":1}`, "offset 7: expected another value after ','"},
		{`{"a" 1}`, `{"a":1}`, "offset 5: expected ':'"},
		{`{"a":}`, `{"a":1}`, "offset 5: expected a value"},
		{`{a:1}`, `{"a":1}`, "offset 1: expected a member's name"},
		{`{1:1}`, `{"1":1}`, "offset 1: expected a member's name"},
		{`{"a":1 "b":2}`, `{"a":1, "b":2}`, "offset 7: expected ',' or '}'"},
		{`{"a":1`, `{"a":1}`, "offset 6: unexpected end, expected ',' or '}'"},
		{`// no` + "\n1", `1`, "offset 0: expected a value"},
		{`'a'`, `"a"`, "offset 0: expected a value"},

		{`{"a":1,"a":2}`, `{"a":1,"A":2}`, `offset 7: repeated field "a"`},
		{`{"a":1,"\u0061":2}`, `{"a":1,"\u0062":2}`, `offset 7: repeated field "a"`},
		{`[{"x":{"":1,"":2}}]`, `[{"":{"":1}}]`, `offset 12: repeated field ""`},

		{`01`, `0`, "offset 0: number with a leading zero"},
		{`-01`, `-0`, "offset 1: number with a leading zero"},
		{`-`, `-1`, "offset 0: expected a value"},
		{`+1`, `1`, "offset 0: expected a value"},
		{`.5`, `0.5`, "offset 0: expected a value"},
		{`1.`, `1.0`, "offset 1: expected digits after '.'"},
		{`1e`, `1e1`, "offset 1: expected digits in the exponent"},
		{`1e+`, `1E+1`, "offset 1: expected digits in the exponent"},
		{`0x1`, `0`, "offset 1: unexpected data after the value"},
		{`NaN`, `0`, "offset 0: expected a value"},
		{`Infinity`, `0`, "offset 0: expected a value"},

		{`"a`, `"a"`, "offset 2: unexpected end inside a string"},
		{`"\`, `"\\"`, "offset 1: unexpected end inside a string"},
		{`"\"`, `"\""`, "offset 3: unexpected end inside a string"},
		{"\"\n\"", `"\n"`, "offset 1: unescaped control character in a string"},
		{"\"\x00\"", `"\u0000"`, "offset 1: unescaped control character in a string"},
		{"\"\x1f\"", "\"\x7f\"", "offset 1: unescaped control character in a string"},
		{`"\x41"`, `"\u0041"`, "offset 1: unknown escape in a string"},
		{`"\u12"`, `"\u0012"`, `offset 1: expected four hex digits after \u`},
		{`"\u12g4"`, `"\u12F4"`, `offset 1: expected four hex digits after \u`},
		{`"\ud800"`, `"\ud800\udc00"`, "offset 1: lone surrogate in a string"},
		{`"\udc00"`, `"\ud7ff"`, "offset 1: lone surrogate in a string"},
		{`"\ud800x"`, `"\uDBFF\uDFFFx"`, "offset 1: lone surrogate in a string"},
		{`"\ud800\ud800"`, `"\ue000"`, "offset 1: lone surrogate in a string"},
		{`"\ud800\n"`, `"\n"`, "offset 1: lone surrogate in a string"},
		{`{"\ud800":1}`, `{"\ud83d\ude00":1}`, "offset 2: lone surrogate in a string"},
		{"\"\xff\"", `"ÿ"`, "offset 1: invalid UTF-8 in a string"},
		{"\"\xc3\"", `"é"`, "offset 1: invalid UTF-8 in a string"},
		{"\"\xed\xa0\x80\"", `"퟿"`, "offset 1: invalid UTF-8 in a string"}, // a surrogate as UTF-8
		{"\"\xc0\x80\"", `"\u0000"`, "offset 1: invalid UTF-8 in a string"},
		{"{\"a\xff\":1}", `{"a":1}`, "offset 3: invalid UTF-8 in a string"},
		{"\xff", `1`, "offset 0: expected a value"},
	} {
		if err := strictjson.Valid([]byte(tt.bad)); err == nil || err.Error() != tt.err {
			t.Errorf("Valid(%q) = %v, want %s", tt.bad, err, tt.err)
		}
		if err := strictjson.Valid([]byte(tt.good)); err != nil {
			t.Errorf("Valid(%q) = %v", tt.good, err)
		}
		for name, write := range map[string]func(b, v []byte) ([]byte, error){
			"Canonical": strictjson.Canonical, "Compact": strictjson.Compact} {
			if b, err := write([]byte("x"), []byte(tt.bad)); err == nil || string(b) != "x" {
				t.Errorf("%s(%q) = %q, %v; want an error and nothing appended", name, tt.bad, b, err)
			}
			if _, err := write(nil, []byte(tt.good)); err != nil {
				t.Errorf("%s(%q) = %v", name, tt.good, err)
			}
		}
		if _, err := value([]byte(tt.bad)); err == nil {
			t.Errorf("reading %q member by member brings no error", tt.bad)
		}
		if _, err := value([]byte(tt.good)); err != nil {
			t.Errorf("reading %q member by member: %v", tt.good, err)
		}
	}
}

func TestDepth(t *testing.T) {
	nested := func(open, end string, n int) []byte {
		return []byte(strings.Repeat(open, n) + strings.Repeat(end, n))
	}
	for _, tt := range []struct {
		name     string
		ok, deep []byte
	}{
		{"arrays", nested("[", "]", 128), nested("[", "]", 129)},
		{"objects", []byte(strings.Repeat(`{"a":`, 128) + "0" + strings.Repeat("}", 128)),
			[]byte(strings.Repeat(`{"a":`, 129) + "0" + strings.Repeat("}", 129))},
		{"both", []byte(strings.Repeat(`[{"a":`, 64) + "0" + strings.Repeat("}]", 64)),
			[]byte(strings.Repeat(`[{"a":`, 64) + "[]" + strings.Repeat("}]", 64))},
	} {
		for name, read := range map[string]func([]byte) error{
			"Valid":     strictjson.Valid,
			"Object":    func(b []byte) error { _, err := value(b); return err },
			"Canonical": func(b []byte) error { _, err := strictjson.Canonical(nil, b); return err },
			"Compact":   func(b []byte) error { _, err := strictjson.Compact(nil, b); return err },
		} {
			if err := read(tt.ok); err != nil {
				t.Errorf("%s of 128 %s: %v", name, tt.name, err)
			}
			if err := read(tt.deep); err == nil || !strings.Contains(err.Error(), "nested deeper than 128 levels") {
				t.Errorf("%s of 129 %s: %v", name, tt.name, err)
			}
		}
	}
	// Depth is what is open, not what has been.
	wide := []byte("[" + strings.Repeat("[[]],", 1000) + "{}]")
	if err := strictjson.Valid(wide); err != nil {
		t.Errorf("many shallow values: %v", err)
	}
}

func TestRepeatedNamesAmongMany(t *testing.T) {
	for _, n := range []int{2, 11, 12, 13, 14, 100} {
		for dup := range n {
			var b strings.Builder
			b.WriteString("{")
			for i := range n {
				b.WriteString(`"n` + strconv.Itoa(i) + `":0,`)
			}
			good, bad := b.String()+`"x":0}`, b.String()+`"n`+strconv.Itoa(dup)+`":0}`
			if err := strictjson.Valid([]byte(good)); err != nil {
				t.Fatalf("%d names: %v", n, err)
			}
			if err := strictjson.Valid([]byte(bad)); err == nil || !strings.Contains(err.Error(), `repeated field "n`+strconv.Itoa(dup)+`"`) {
				t.Fatalf("%d names, number %d repeated: %v", n, dup, err)
			}
			if _, err := value([]byte(bad)); err == nil {
				t.Fatalf("%d names, number %d repeated: Object does not see it", n, dup)
			}
		}
	}
}

func TestInt(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int64
		err  string
	}{
		{"0", 0, ""}, {"-0", 0, ""}, {"7", 7, ""}, {"-12", -12, ""},
		{"9223372036854775807", math.MaxInt64, ""}, {"-9223372036854775808", math.MinInt64, ""},
		{"9007199254740993", 1<<53 + 1, ""}, // M5: above 2^53
		{"9223372036854775808", 0, "offset 0: integer out of range"},
		{"-9223372036854775809", 0, "offset 0: integer out of range"},
		{"99999999999999999999", 0, "offset 0: integer out of range"},
		{"18446744073709551616", 0, "offset 0: integer out of range"},
		{"999999999999999999", 999999999999999999, ""}, {"1000000000000000000", 1e18, ""},
		{"00", 0, "offset 0: number with a leading zero"}, {"-012", 0, "offset 1: number with a leading zero"},
		{"5.0", 0, "offset 0: expected an integer without fraction or exponent"},
		{"1e3", 0, "offset 0: expected an integer without fraction or exponent"},
		{`"5"`, 0, "offset 0: expected an integer"},
		{"null", 0, "offset 0: expected an integer"},
		{"", 0, "offset 0: unexpected end, expected an integer"},
	} {
		list, err := strictjson.NewDecoder([]byte("[1," + tt.text + "]")).Ints(nil)
		if (err == nil) != (tt.err == "") || err == nil && !slices.Equal(list, []int{1, int(tt.want)}) {
			t.Errorf("Ints([1,%s]) = %v, %v", tt.text, list, err)
		}
		n, err := strictjson.NewDecoder([]byte(tt.text)).Int()
		if text(err) != tt.err || n != tt.want {
			t.Errorf("Int(%s) = %d, %v; want %d, %s", tt.text, n, err, tt.want, tt.err)
		}
		if err == nil {
			if back, _ := strictjson.NewDecoder(strictjson.AppendInt(nil, n)).Int(); back != n {
				t.Errorf("AppendInt(%d) reads back as %d", n, back)
			}
		}
	}
}

func TestFloat(t *testing.T) {
	for _, tt := range []struct {
		text string
		want float64
		err  string
	}{
		{"0", 0, ""}, {"-0.0", math.Copysign(0, -1), ""}, {"0.001", 0.001, ""}, {"1E3", 1000, ""}, {"2e-7", 2e-7, ""},
		{"1.7976931348623157e308", math.MaxFloat64, ""}, {"5e-324", 5e-324, ""}, {"1e-400", 0, ""}, {"1e22", 1e22, ""},
		{"1e400", 0, "offset 0: number out of range"},
		{"true", 0, "offset 0: expected a number"},
	} {
		f, err := strictjson.NewDecoder([]byte(tt.text)).Float()
		if text(err) != tt.err || f != tt.want {
			t.Errorf("Float(%s) = %v, %v; want %v, %s", tt.text, f, err, tt.want, tt.err)
		}
		if err != nil {
			continue
		}
		b := strictjson.AppendFloat(nil, f)
		std, _ := json.Marshal(f)
		if !bytes.Equal(b, std) {
			t.Errorf("AppendFloat(%v) = %s, encoding/json writes %s", f, b, std)
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if b := strictjson.AppendFloat(nil, f); string(b) != "null" {
			t.Errorf("AppendFloat(%v) = %s", f, b)
		}
	}
}

func TestKinds(t *testing.T) {
	for text, want := range map[string]strictjson.Kind{
		`{}`: strictjson.Object, ` []`: strictjson.Array, `""`: strictjson.String, `-1`: strictjson.Number, `9`: strictjson.Number,
		`true`: strictjson.Bool, `false`: strictjson.Bool, `null`: strictjson.Null, ``: strictjson.Invalid, `x`: strictjson.Invalid, `]`: strictjson.Invalid,
	} {
		if got := strictjson.NewDecoder([]byte(text)).Kind(); got != want {
			t.Errorf("Kind(%s) = %d, want %d", text, got, want)
		}
	}
}

func TestWrongKind(t *testing.T) {
	for _, tt := range []struct {
		want string
		read func(d *strictjson.Decoder) error
		ok   string
	}{
		{"a string", func(d *strictjson.Decoder) error { _, err := d.String(); return err }, `"a"`},
		{"true or false", func(d *strictjson.Decoder) error { _, err := d.Bool(); return err }, `true`},
		{"an object", func(d *strictjson.Decoder) error { return d.Object(nil) }, `{}`},
		{"an array", func(d *strictjson.Decoder) error { return d.Array(nil) }, `[]`},
	} {
		for _, text := range []string{`{}`, `[]`, `"a"`, `1`, `true`, `null`} {
			err := tt.read(strictjson.NewDecoder([]byte(text)))
			if text == tt.ok {
				if err != nil {
					t.Errorf("%s from %s: %v", tt.want, text, err)
				}
			} else if err == nil || err.Error() != "offset 0: expected "+tt.want {
				t.Errorf("%s from %s: %v", tt.want, text, err)
			}
		}
	}
}

func TestNull(t *testing.T) {
	d := strictjson.NewDecoder([]byte(`[null, nullx]`))
	err := d.Array(func() error {
		if !d.Null() {
			t.Error("Null does not see a null")
		}
		return nil
	})
	if text(err) != "offset 11: expected ',' or ']'" {
		t.Errorf("error = %v", err)
	}
	if strictjson.NewDecoder([]byte(`0`)).Null() {
		t.Error("Null takes 0")
	}
}

// A member or an element that its reader forgets is an error and not a value
// that somebody else reads by mistake.
func TestUnconsumed(t *testing.T) {
	d := strictjson.NewDecoder([]byte(`{"a":1}`))
	if err := d.Object(func(string) error { return nil }); err == nil {
		t.Error("Object accepts a member that nobody consumed")
	}
	d = strictjson.NewDecoder([]byte(`[,1]`))
	if err := d.Array(func() error { d.Null(); return nil }); err == nil {
		t.Error("Array accepts an element that nobody consumed")
	}
}

func TestUnknownAndMissing(t *testing.T) {
	d := strictjson.NewDecoder([]byte(`{"a": {"Tol": 1}}`))
	err := d.Object(func(string) error {
		return d.Object(strictjson.Unknown)
	})
	if text(err) != `offset 7: unknown field "Tol"` {
		t.Errorf("error = %v, want the nearest offset", err)
	}
	if err := strictjson.Missing("a\nb"); err.Error() != `missing field "a\nb"` {
		t.Errorf("error = %v", err)
	}
	long := strings.Repeat("é", 1000)
	if err := strictjson.Unknown(long); err.Error() != `unknown field "`+long[:64]+`"…` {
		t.Errorf("a long name is not capped: %v", err)
	}
}

func TestErrorsQuoteNoValues(t *testing.T) {
	for _, text := range []string{
		`{"a":"canary`, `{"a":canary}`, `{"a":"canary\x"}`, "{\"a\":\"canary\xff\"}", `{"a":"canary"}canary`, `["canary" "canary"]`,
	} {
		if err := strictjson.Valid([]byte(text)); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("Valid(%q) = %v", text, err)
		}
	}
}

// Fiber reuses its buffers, and so does the carrier of a plugin.
func TestStringsOutliveTheData(t *testing.T) {
	data := []byte(`{"name":"value","e\u0073c":"e\u0073c"}`)
	d := strictjson.NewDecoder(data)
	var have []string
	if err := d.Object(func(name string) error {
		s, err := d.String()
		have = append(have, name, s)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] = 'x'
	}
	if got := strings.Join(have, " "); got != "name value esc esc" {
		t.Errorf("strings changed with the data: %q", got)
	}
}

func TestRawKeepsTheText(t *testing.T) {
	data := []byte(` {"a": [1.50, "\u0041"],"b":1E+2 } `)
	d := strictjson.NewDecoder(data)
	raw, err := d.Raw()
	if err != nil || string(raw) != `{"a": [1.50, "\u0041"],"b":1E+2 }` {
		t.Fatalf("Raw = %s, %v", raw, err)
	}
	if err := d.End(); err != nil {
		t.Fatal(err)
	}
	if _ = append(raw, 'x'); data[len(data)-1] != ' ' {
		t.Error("appending to a raw value writes into the data")
	}
	compact, err := strictjson.Compact(nil, data)
	if err != nil || string(compact) != `{"a":[1.50,"\u0041"],"b":1E+2}` {
		t.Errorf("Compact = %s, %v", compact, err)
	}
}

func TestAppendString(t *testing.T) {
	for in, want := range map[string]string{
		"":                             `""`,
		"plain é 日本語 😀 <b>&/\x7f":      `"plain é 日本語 😀 <b>&/` + "\x7f\"",
		"\"\\\b\t\n\f\r\x00\x1f":       `"\"\\\b\t\n\f\r\u0000\u001f"`,
		"a\u0085b\u2028c\u2029d\u2027": `"a\u0085b\u2028c\u2029d` + "\u2027\"",
		"\xff a\xc3":                   "\"\uFFFD a\uFFFD\"",
		"\uFFFD":                       "\"\uFFFD\"",
	} {
		if got := string(strictjson.AppendString(nil, in)); got != want {
			t.Errorf("AppendString(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestReadingAllocatesOnce(t *testing.T) {
	data := []byte(`{"verdict":"block","message":"Please rephrase.","reason_code":"injection","list":[1,2,{"a":true}]}`)
	n := testing.AllocsPerRun(100, func() {
		d := strictjson.NewDecoder(data)
		if err := d.Object(func(name string) error {
			if name == "list" {
				return d.Skip()
			}
			_, err := d.String()
			return err
		}); err != nil {
			t.Fatal(err)
		}
	})
	if n > 1 {
		t.Errorf("%v allocations, expected one, the copy of the text", n)
	}
	if n := testing.AllocsPerRun(100, func() { _ = strictjson.Valid(data) }); n > 0 {
		t.Errorf("Valid: %v allocations", n)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// value reads data member by member into what encoding/json makes of it.
func value(data []byte) (any, error) {
	d := strictjson.NewDecoder(data)
	v, err := anyValue(d)
	if err == nil {
		err = d.End()
	}
	return v, err
}

func anyValue(d *strictjson.Decoder) (any, error) {
	switch d.Kind() {
	case strictjson.Object:
		m := map[string]any{}
		err := d.Object(func(name string) (err error) {
			m[name], err = anyValue(d)
			return err
		})
		return m, err
	case strictjson.Array:
		list := []any{}
		err := d.Array(func() error {
			v, err := anyValue(d)
			list = append(list, v)
			return err
		})
		return list, err
	case strictjson.String:
		return d.String()
	case strictjson.Number:
		raw, err := d.Raw()
		return json.Number(raw), err
	case strictjson.Bool:
		return d.Bool()
	}
	if !d.Null() {
		return nil, d.Skip()
	}
	return nil, nil
}

func BenchmarkValid(b *testing.B) {
	data := []byte(`{"now":1,"seed":"2","text":"` + strings.Repeat("The quick brown fox. ", 50) + `","history":[{"role":"user","content":"hi"}]}`)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := strictjson.Valid(data); err != nil {
			b.Fatal(err)
		}
	}
}

// Text is read eight bytes at a time: every byte that is special has to be seen
// at every place among ordinary ones.
func TestSpecialBytesAtEveryPlace(t *testing.T) {
	for n := range 40 {
		for at := range n {
			for c := range 256 {
				text := []byte(strings.Repeat("~ !#[]az", 5)[:n])
				text[at] = byte(c)
				quoted := `"` + string(text) + `"`
				if got, want := strictjson.Valid([]byte(quoted)) == nil, json.Valid([]byte(quoted)) && c < 0x80; got != want {
					t.Fatalf("Valid(%q) = %v, want %v", quoted, got, want)
				}
				want, _ := json.Marshal(string(text))
				var back, wantBack string
				if err := json.Unmarshal(strictjson.AppendString(nil, string(text)), &back); err != nil {
					t.Fatalf("AppendString(%q): %v", text, err)
				}
				if _ = json.Unmarshal(want, &wantBack); back != wantBack {
					t.Fatalf("AppendString(%q) stands for %q", text, back)
				}
			}
		}
	}
}
