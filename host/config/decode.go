package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// decode fills c from agent.toml. The library reads the language; the walk over
// its tree is ours, because its own matches names in any case, takes an integer
// for a duration in nanoseconds, and stops at the first mistake.
// It returns false when the file is not TOML, so nothing of it is known.
func (c *Config) decode(data []byte, l *ledger) bool {
	tree := map[string]any{}
	meta, err := toml.Decode(string(data), &tree)
	if err != nil {
		l.add(syntaxError(c.file(), err))
		return false
	}
	l.wrote(nil, tree)
	d := &decoder{file: c.file(), data: data, order: documentOrder(meta), ledger: l}
	d.table(nil, tree, reflect.ValueOf(c).Elem())
	return true
}

func syntaxError(file string, err error) string {
	if p, ok := errors.AsType[toml.ParseError](err); ok {
		return fmt.Sprintf("%s:%d: %s", file, p.Position.Line, p.Message)
	}
	return file + ": " + strings.TrimPrefix(err.Error(), "toml: ")
}

// documentOrder numbers every table and key by its first mention.
func documentOrder(meta toml.MetaData) map[string]int {
	order := map[string]int{}
	for _, key := range meta.Keys() {
		for n := 1; n <= len(key); n++ {
			id := keyID(key[:n])
			if _, seen := order[id]; !seen {
				order[id] = len(order)
			}
		}
	}
	return order
}

func keyID(path []string) string { return strings.Join(path, "\x00") }

// decoder walks a TOML tree and the Config's type side by side.
type decoder struct {
	file   string
	data   []byte
	order  map[string]int
	under  []string       // where the tree stands in the document
	lines  map[string]int // of keys, once somebody asked
	ledger *ledger
}

// customTable is a table whose keys are not all known from its type.
type customTable interface {
	decodeTable(d *decoder, path []string, table map[string]any)
}

// customList is the same for an array of tables.
type customList interface {
	decodeList(d *decoder, path []string, list []map[string]any)
}

// presetter sets the defaults of a table that may exist many times.
type presetter interface{ preset() }

var (
	durationType = reflect.TypeFor[time.Duration]()
	sizeType     = reflect.TypeFor[Size]()
)

// table decodes every key of a table into the field that bears its exact name.
func (d *decoder) table(path []string, table map[string]any, into reflect.Value) {
	fields := fieldsOf(into.Type())
	for _, name := range d.names(path, table) {
		if f, ok := fields[name]; ok {
			d.value(child(path, name), table[name], into.FieldByIndex(f))
		} else {
			d.unknown(child(path, name), fields)
		}
	}
}

// names lists a table's keys in the order of the document.
func (d *decoder) names(path []string, table map[string]any) []string {
	names := make([]string, 0, len(table))
	for name := range table {
		names = append(names, name)
	}
	place := func(name string) int { return d.order[keyID(slices.Concat(d.under, path, []string{name}))] }
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(place(a)-place(b), strings.Compare(a, b))
	})
	return names
}

func (d *decoder) value(path []string, v any, into reflect.Value) {
	if custom, ok := into.Addr().Interface().(customTable); ok {
		if table, ok := v.(map[string]any); d.expect(ok, path, "a table", v) {
			custom.decodeTable(d, path, table)
		}
		return
	}
	if custom, ok := into.Addr().Interface().(customList); ok {
		if list, ok := d.listOfTables(path, v); ok {
			custom.decodeList(d, path, list)
		}
		return
	}
	switch into.Type() {
	case durationType:
		d.duration(path, v, into)
		return
	case sizeType:
		d.size(path, v, into)
		return
	}
	switch into.Kind() {
	case reflect.Struct:
		if table, ok := v.(map[string]any); d.expect(ok, path, "a table", v) {
			d.table(path, table, into)
		}
	case reflect.Map:
		if table, ok := v.(map[string]any); d.expect(ok, path, "a table", v) {
			d.tableOfTables(path, table, into)
		}
	case reflect.Slice:
		if into.Type().Elem().Kind() == reflect.Struct {
			d.tables(path, v, into)
			return
		}
		d.strings(path, v, into)
	case reflect.String:
		if s, ok := v.(string); d.expect(ok, path, "a string", v) {
			into.SetString(s)
		}
	case reflect.Bool:
		if b, ok := v.(bool); d.expect(ok, path, "true or false", v) {
			into.SetBool(b)
		}
	case reflect.Int:
		if n, ok := v.(int64); d.expect(ok, path, "a whole number", v) {
			into.SetInt(n)
		}
	case reflect.Float64:
		d.float(path, v, into)
	default:
		panic("config: no TOML form for " + into.Type().String())
	}
}

func (d *decoder) float(path []string, v any, into reflect.Value) {
	switch n := v.(type) {
	case float64:
		into.SetFloat(n)
	case int64:
		into.SetFloat(float64(n))
	default:
		d.expect(false, path, "a number", v)
	}
}

func (d *decoder) duration(path []string, v any, into reflect.Value) {
	s, ok := v.(string)
	if !d.expect(ok, path, `a duration such as "30s"`, v) {
		return
	}
	t, err := time.ParseDuration(s)
	if err != nil {
		d.ledger.key(d.file, path, `expected a duration such as "30s", got %q`, shorten(s))
		return
	}
	into.SetInt(int64(t))
}

func (d *decoder) size(path []string, v any, into reflect.Value) {
	s, ok := v.(string)
	if !d.expect(ok, path, `a size such as "64MiB"`, v) {
		return
	}
	n, err := ParseSize(s)
	if err != nil {
		d.ledger.key(d.file, path, "%v, got %q", err, shorten(s))
		return
	}
	into.SetInt(int64(n))
}

func (d *decoder) strings(path []string, v any, into reflect.Value) {
	list, ok := v.([]any)
	if !d.expect(ok, path, "an array of strings", v) {
		return
	}
	out := make([]string, 0, len(list))
	for _, e := range list {
		s, ok := e.(string)
		if !d.expect(ok, path, "an array of strings", e) {
			return
		}
		out = append(out, s)
	}
	into.Set(reflect.ValueOf(out))
}

// tables decodes an array of tables; errors name its elements from 1.
func (d *decoder) tables(path []string, v any, into reflect.Value) {
	list, ok := d.listOfTables(path, v)
	if !ok {
		return
	}
	out := reflect.MakeSlice(into.Type(), len(list), len(list))
	for i, table := range list {
		d.table(child(path, strconv.Itoa(i+1)), table, out.Index(i))
	}
	into.Set(out)
}

// listOfTables returns an array of tables, and false if it is none.
func (d *decoder) listOfTables(path []string, v any) ([]map[string]any, bool) {
	var list []map[string]any
	switch v := v.(type) {
	case []map[string]any:
		list = v
	case []any: // tables written inline; an empty array has no type
		for _, e := range v {
			table, ok := e.(map[string]any)
			if !d.expect(ok, path, "an array of tables", e) {
				return nil, false
			}
			list = append(list, table)
		}
	default:
		return nil, d.expect(false, path, "an array of tables", v)
	}
	return list, true
}

func (d *decoder) tableOfTables(path []string, table map[string]any, into reflect.Value) {
	out := reflect.MakeMap(into.Type())
	for _, name := range d.names(path, table) {
		sub, ok := table[name].(map[string]any)
		if !d.expect(ok, child(path, name), "a table", table[name]) {
			continue
		}
		elem := reflect.New(into.Type().Elem())
		if p, ok := elem.Interface().(presetter); ok {
			p.preset()
		}
		d.table(child(path, name), sub, elem.Elem())
		out.SetMapIndex(reflect.ValueOf(name), elem.Elem())
	}
	into.Set(out)
}

// expect reports a value of the wrong type, unless ok.
func (d *decoder) expect(ok bool, path []string, what string, got any) bool {
	if !ok {
		d.ledger.key(d.file, path, "expected %s, got %s", what, kindOf(got))
	}
	return ok
}

// unknown reports a key that nothing reads, with its line.
func (d *decoder) unknown(path []string, fields map[string][]int) {
	if d.lines == nil {
		d.lines = positions(d.data)
	}
	where := d.file
	if line := d.lines[keyID(path)]; line > 0 && len(d.under) == 0 {
		where += ":" + strconv.Itoa(line)
	}
	text := where + ": unknown key " + keyName(d.ledger.path(path))
	if near := nearest(path[len(path)-1], fields); near != "" {
		text += fmt.Sprintf(", did you mean %q?", near)
	}
	d.ledger.add(text)
}

// fieldsOf maps the TOML names of a struct to its fields, embedded ones included.
func fieldsOf(t reflect.Type) map[string][]int {
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		if name := f.Tag.Get("toml"); name != "" && name != "-" {
			fields[name] = f.Index
		}
	}
	return fields
}

func child(path []string, name string) []string {
	return append(slices.Clip(path), name)
}

func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a fraction"
	case bool:
		return "true or false"
	case time.Time:
		return "a date or a time"
	case []any, []map[string]any:
		return "an array"
	default:
		return "a table"
	}
}

// shorten bounds what an error quotes of the file.
func shorten(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
