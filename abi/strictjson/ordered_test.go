package strictjson_test

import (
	"reflect"
	"strings"
	"testing"

	"weir/abi/strictjson"
)

var orderedNames = []string{"a", "b7", "seven_7", "a_name_of_15ch", "a_name_of_more_than_sixteen"}

// inOrder reads what it can of an object with these members, the numbers and
// strings among them, and says whether that was all.
func inOrder(data []byte) (map[string]any, bool) {
	d := strictjson.NewDecoder(data)
	all := map[string]any{}
	if !d.Enter() {
		return nil, false
	}
	for _, name := range orderedNames {
		if n := strictjson.NameOf(name); !d.Member(&n) {
			continue
		}
		var err error
		switch d.Kind() {
		case strictjson.String:
			all[name], err = d.String()
		case strictjson.Array:
			all[name], err = d.Ints(nil)
		default:
			all[name], err = d.Int()
		}
		if err != nil {
			return nil, false
		}
	}
	return all, d.Leave() && d.End() == nil
}

func anyOrder(data []byte) (map[string]any, error) {
	d := strictjson.NewDecoder(data)
	all := map[string]any{}
	err := d.Object(func(name string) (err error) {
		switch d.Kind() {
		case strictjson.String:
			all[name], err = d.String()
		case strictjson.Array:
			var list []int
			err = d.Array(func() error {
				n, err := d.Int()
				list = append(list, int(n))
				return err
			})
			all[name] = list
		default:
			all[name], err = d.Int()
		}
		return err
	})
	if err == nil {
		err = d.End()
	}
	return all, err
}

var orderedTexts = []string{
	`{}`, `{"a":1}`, `{"a":1,"b7":"x\u0041"}`, `{"seven_7":[1,2,-3],"a_name_of_15ch":0,"a_name_of_more_than_sixteen":"end"}`,
	`{"b7":[1, 2]}`, `{"a":"a longer text, so that sixteen bytes are left"}`, `{"a":[]}`, `{"a":-0,"b7":999999999999999999}`,
}

func TestInOrder(t *testing.T) {
	for _, text := range orderedTexts {
		got, ok := inOrder([]byte(text))
		want, err := anyOrder([]byte(text))
		if !ok || err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: in order %v %v, in any order %v %v", text, got, ok, want, err)
		}
	}
}

// What is not in order is left to Object, right or wrong.
func TestNotInOrder(t *testing.T) {
	const good = `{"a":1,"b7":"two","seven_7":[3,4],"a_name_of_15ch":5}`
	if _, ok := inOrder([]byte(good)); !ok {
		t.Fatal("the control is not in order")
	}
	for i := range good {
		if _, ok := inOrder([]byte(good[:i])); ok {
			t.Errorf("%s is in order", good[:i])
		}
	}
	for _, text := range []string{
		` {"a":1}`, `{ "a":1}`, `{"a" :1}`, `{"a":1 ,"b7":2}`, `{"a":1, "b7":2}`, `{"a":1 }`, `{"a":1,}`, `{,"a":1}`, `{"a":1}}`,
		`{"b7":1,"a":2}`, `{"a":1,"a":1}`, `{"a":1"b7":2}`, `{"c":1}`, `{"\u0061":1}`, `{"a":01}`, `{"a":1.0}`, `{"a":1e2}`, `{"a":-}`, `{"a":[1,]}`,
		`{"a":[,1]}`, `{"a":[1 2]}`, `{"a":[01]}`, `{"a":"\x"}`, "{\"a\":\"\xff\"}", `[]`, `null`, `{"a":null}`,
		`{"A":1}`, `{"seven_8":1,"a_name_of_15ch":22222}`, `{"a_name_of_15cg":22222222222222}`, `{"a_name_of_more_than_sixteem":1}`,
	} {
		if got, ok := inOrder([]byte(text)); ok {
			t.Errorf("%s is in order: %v", text, got)
		}
	}
}

// A decoder of a text copies nothing of it, and goes back after an error.
func TestReset(t *testing.T) {
	text := `{"name":"` + strings.Repeat("x", 100) + `"}`
	var d strictjson.Decoder
	name := strictjson.NameOf("name")
	if n := testing.AllocsPerRun(10, func() {
		d.Reset(text)
		at := d.Mark()
		if d.Enter(); d.Leave() {
			t.Fatal("left an object that is not at its end")
		}
		d.Back(at)
		if !d.Enter() || !d.Member(&name) {
			t.Fatal("not in order")
		}
		if s, err := d.String(); len(s) != 100 || err != nil || !d.Leave() || d.End() != nil {
			t.Fatal(s, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	d.Reset("")
	if d.End() != nil || d.Skip() == nil {
		t.Error("an empty text has a value")
	}
}

// The short ways agree with the long ones wherever they say yes.
func FuzzInOrder(f *testing.F) {
	for _, text := range append(orderedTexts, seeds...) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := inOrder(data)
		if !ok {
			return
		}
		want, err := anyOrder(data)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: in order %v, in any order %v, %v", data, got, want, err)
		}
	})
}
