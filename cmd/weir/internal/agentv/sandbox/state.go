package sandbox

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// State is the world of a scenario: an object of JSON values. A path is names
// and indices of arrays with dots between them: orders.0.status.
type State struct {
	root map[string]any
}

// NewState returns the state that an object describes.
func NewState(object []byte) (*State, error) {
	value, err := Decode(object)
	if err != nil {
		return nil, err
	}
	root, _ := value.(map[string]any)
	if root == nil {
		root = make(map[string]any)
	}
	return &State{root}, nil
}

// Decode reads one JSON value; numbers keep their text.
func Decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	err := d.Decode(&value)
	return value, err
}

// Lookup finds the value at a path. The empty path is the whole state.
func (s *State) Lookup(path string) (any, bool) {
	return Lookup(s.root, path)
}

// Lookup finds the value at a path within another. A name that has dots in it is
// found as well, if it is there as it stands.
func Lookup(value any, path string) (any, bool) {
	if path == "" {
		return value, true
	}
	switch v := value.(type) {
	case map[string]any:
		if found, ok := v[path]; ok {
			return found, true
		}
		name, rest, nested := strings.Cut(path, ".")
		inner, ok := v[name]
		if !ok || !nested {
			return nil, false
		}
		return Lookup(inner, rest)
	case []any:
		name, rest, _ := strings.Cut(path, ".")
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(v) {
			return nil, false
		}
		return Lookup(v[i], rest)
	}
	return nil, false
}

// Set puts a value at a path. What is missing on the way there becomes an
// object, and so does what has no names or indices.
func (s *State) Set(path string, value any) {
	if _, ok := s.root[path]; ok {
		s.root[path] = value
		return
	}
	s.root, _ = set(s.root, strings.Split(path, "."), value).(map[string]any)
}

func set(at any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if array, ok := at.([]any); ok {
		if i, err := strconv.Atoi(path[0]); err == nil && i >= 0 && i < len(array) {
			array[i] = set(array[i], path[1:], value)
			return array
		}
	}
	object, ok := at.(map[string]any)
	if !ok {
		object = make(map[string]any)
	}
	object[path[0]] = set(object[path[0]], path[1:], value)
	return object
}

// JSON writes the state with its names in order.
func (s *State) JSON() []byte {
	return encode(s.root)
}

func encode(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return []byte("null") // what was decoded from JSON can be written as JSON
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Equal compares decoded values; numbers by what they mean, so 1 is 1.0.
func Equal(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		return ok && sameNumber(x, y)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, Equal)
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, Equal)
	}
	return a == b
}

func sameNumber(x, y json.Number) bool {
	if x == y {
		return true
	}
	a, okA := exact(x)
	b, okB := exact(y)
	if okA && okB {
		return a.Cmp(b) == 0
	}
	f, errF := x.Float64()
	g, errG := y.Float64()
	return errF == nil && errG == nil && f == g
}

// exact reads a number without rounding, unless its exponent would fill the
// memory with digits.
func exact(n json.Number) (*big.Rat, bool) {
	if len(n) > 100 || strings.ContainsAny(string(n), "eE") {
		return nil, false
	}
	return new(big.Rat).SetString(string(n))
}
