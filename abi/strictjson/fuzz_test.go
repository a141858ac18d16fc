package strictjson_test

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"weir/abi/strictjson"
)

var seeds = []string{
	``, `null`, ` [1, 2.5e-3, "a\u00e9\ud83d\ude00", {"b":{"c":[true,false,null]}}] `, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`,
	`"\ud800"`, "\"\xff\"", `{"messages":[{"role":"user","content":"hi"}]}`, `-0`, `1e400`, `123456789012345678901234567890`, `[[[[]]]]`,
	`{"z":1,"y":{"b":0,"a":0},"x":[]}`, `"\b\f\n\r\t\"\\\/"`, "\"\u0085\u2028\u2029\x7f\"", strings.Repeat("[", 129) + strings.Repeat("]", 129),
	`{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"a":0}`,
}

// What is accepted is what encoding/json accepts, with the same value; what is
// refused of that is refused for one of four reasons, each of which is true.
func FuzzAgainstEncodingJSON(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := strictjson.Valid(data)
		ours, errByMember := value(data)
		if (err == nil) != (errByMember == nil) {
			t.Fatalf("Valid says %v, reading by members says %v", err, errByMember)
		}
		if err != nil {
			if json.Valid(data) && !justified(err.Error(), data) {
				t.Fatalf("refused valid JSON without a strict reason: %v", err)
			}
			return
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		var theirs any
		if err := d.Decode(&theirs); err != nil {
			t.Fatalf("accepted what encoding/json refuses: %v", err)
		}
		if !reflect.DeepEqual(ours, theirs) {
			t.Fatalf("value %#v, encoding/json reads %#v", ours, theirs)
		}
		compact, err := strictjson.Compact(nil, data)
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if err := json.Compact(&want, data); err != nil || !bytes.Equal(compact, want.Bytes()) {
			t.Fatalf("Compact = %s, encoding/json has %s", compact, want.Bytes())
		}
	})
}

// justified finds the reason of a refusal in data by other means.
func justified(reason string, data []byte) bool {
	switch {
	case strings.HasSuffix(reason, "invalid UTF-8 in a string"):
		return !utf8.Valid(data)
	case strings.HasSuffix(reason, "nested deeper than 128 levels"):
		return deepest(data) > 128
	case strings.HasSuffix(reason, "lone surrogate in a string"):
		return bytes.Contains(bytes.ToLower(data), []byte(`\ud`))
	case strings.Contains(reason, "repeated field "):
		d := json.NewDecoder(bytes.NewReader(data))
		repeats, err := repeated(d)
		return repeats && err == nil || err != nil && err != io.EOF
	}
	return false
}

func deepest(data []byte) int {
	d := json.NewDecoder(bytes.NewReader(data))
	depth, most := 0, 0
	for {
		tok, err := d.Token()
		if err != nil {
			return most
		}
		switch tok {
		case json.Delim('['), json.Delim('{'):
			depth++
			most = max(most, depth)
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
}

// repeated says whether any object of the next value repeats a name.
func repeated(d *json.Decoder) (bool, error) {
	tok, err := d.Token()
	if err != nil {
		return false, err
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return false, nil
	}
	found, seen := false, map[any]bool{}
	for d.More() {
		if delim == '{' {
			name, err := d.Token()
			if err != nil {
				return found, err
			}
			found = found || seen[name]
			seen[name] = true
		}
		inner, err := repeated(d)
		if err != nil {
			return found, err
		}
		found = found || inner
	}
	_, err = d.Token()
	return found, err
}

func FuzzCanonical(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := strictjson.Canonical(nil, data)
		if err != nil {
			if strictjson.Valid(data) == nil && !strings.HasSuffix(err.Error(), "number out of range") {
				t.Fatalf("refused a strict value: %v", err)
			}
			return
		}
		again, err := strictjson.Canonical(nil, first)
		if err != nil || !bytes.Equal(first, again) {
			t.Fatalf("canonical form of\n%s is\n%s, %v", first, again, err)
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		reencoded, err := json.MarshalIndent(v, "\t", "  ")
		if err != nil {
			t.Fatal(err)
		}
		again, err = strictjson.Canonical(nil, reencoded)
		if err != nil || !bytes.Equal(first, again) {
			t.Fatalf("re-encoded by encoding/json:\n%s, %v, want\n%s", again, err, first)
		}
	})
}

func FuzzAppendString(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := strictjson.AppendString(nil, s)
		back, err := strictjson.NewDecoder(b).String()
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if utf8.ValidString(s) && back != s {
			t.Fatalf("%q reads back as %q", s, back)
		}
		var theirs string
		if err := json.Unmarshal(b, &theirs); err != nil || theirs != back {
			t.Fatalf("encoding/json reads %s as %q, %v", b, theirs, err)
		}
		std, _ := json.Marshal(s)
		if err := json.Unmarshal(std, &theirs); err != nil || theirs != back {
			t.Fatalf("encoding/json keeps %q as %q, we as %q", s, theirs, back)
		}
		if bytes.ContainsAny(b, "\u0085\u2028\u2029\n\r") {
			t.Fatalf("%q has a line end", b)
		}
	})
}
