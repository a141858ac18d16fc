package abi_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/abi"
)

// FuzzDecode: a codec never panics; what it accepts, encoding/json reads to the
// same value, and it survives being written and read again. Whatever Validate
// says of it, it does not panic either.
func FuzzDecode(f *testing.F) {
	list := names()
	for i, name := range list {
		for golden, m := range goldens {
			if strings.HasPrefix(golden, name+"/") {
				f.Add(byte(i), m.AppendJSON(nil))
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, data []byte) {
		make := messages[list[int(kind)%len(list)]]
		m := make()
		if err := m.DecodeJSON(data); err != nil {
			return
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		std := make()
		if err := d.Decode(std); err != nil {
			t.Fatalf("accepted what encoding/json refuses: %v", err)
		}
		if diff := cmp.Diff(m, std); diff != "" {
			t.Fatalf("encoding/json reads another value (-ours +theirs):\n%s", diff)
		}
		again := make()
		if err := again.DecodeJSON(m.AppendJSON(nil)); err != nil {
			t.Fatalf("what it writes it does not read: %v", err)
		}
		if diff := cmp.Diff(m, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("written and read again (-was +is):\n%s", diff)
		}
		validate(m)
	})
}

func validate(m message) {
	switch m := m.(type) {
	case *abi.Verdict:
		_ = m.Validate(abi.HookCheckToolCall)
	case *abi.CheckOutputReply:
		_ = m.Validate(&abi.CheckOutputRequest{Text: "a é 日 😀"})
		_ = m.Validate(&abi.CheckOutputRequest{Use: abi.UseDisplay, Texts: []string{"é", ""}})
	case *abi.StepReply:
		_ = m.Validate()
	case *abi.Description:
		_ = m.Validate()
	case *abi.ConfigureReply:
		_ = m.Validate()
	}
}

// FuzzAgree: encoding/json and the codec agree on values that a seed fills in.
func FuzzAgree(f *testing.F) {
	list := names()
	for i := range list {
		f.Add(byte(i), uint64(i))
	}
	f.Fuzz(func(t *testing.T, kind byte, seed uint64) {
		name := list[int(kind)%len(list)]
		m := messages[name]()
		fill(rand.New(rand.NewPCG(seed, 0)), reflect.ValueOf(m).Elem(), true)
		agree(t, name, m)
	})
}

var (
	rawObjects = []string{`{}`, `{"a":1}`, `{"n":9007199254740993,"s":"<&>\u2028\ud83d\ude00"}`, ` { "b" : [ 1.50 , null ] } `}
	rawValues  = append([]string{`null`, `0`, `"x"`, `[]`, `true`, `-1.5e-7`}, rawObjects...)
	textParts  = []string{"", "a", "é", "日", "😀", "\"", "\\", "\n", "\x00", "\u0085", "\u2028", "<b>&", "\x7f", "\uFFFD", "{", "}"}
)

// fill sets everything that v has. Required says that v must not be absent;
// what may be absent is either that or not empty, since its tag leaves out both.
func fill(r *rand.Rand, v reflect.Value, required bool) {
	if !required && r.IntN(2) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[abi.ToolSet]() && r.IntN(2) == 0 {
			v.Field(0).SetBool(true)
			return
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if v.Type() == reflect.TypeFor[abi.ToolSet]() && f.Name == "All" {
				continue
			}
			fill(r, v.Field(i), !strings.Contains(f.Tag.Get("json"), "omitempty"))
			if raw, ok := v.Field(i).Interface().(abi.Raw); ok && raw != nil && object(f.Name) {
				v.Field(i).SetBytes([]byte(rawObjects[r.IntN(len(rawObjects))]))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem(), true)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[abi.Raw]() {
			v.SetBytes([]byte(rawValues[r.IntN(len(rawValues))]))
			return
		}
		n := r.IntN(4)
		if !required {
			n++
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i), true)
		}
	case reflect.String:
		var b strings.Builder
		for range r.IntN(6) {
			b.WriteString(textParts[r.IntN(len(textParts))])
		}
		v.SetString(b.String())
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(r.Uint64()) >> r.IntN(64))
	case reflect.Float64:
		v.SetFloat(r.NormFloat64() * float64(r.IntN(3)))
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	}
}

func object(field string) bool {
	switch field {
	case "Config", "Arguments", "Decision", "Request", "Expect", "ConfigSchema":
		return true
	}
	return false
}
