package instrument

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"weir/host/fault"
)

// TestSpec runs the specification's own tests, as wazero ships them, on each
// module as it is and rewritten: every call must end the same way. They are
// read from the module cache.
func TestSpec(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(strings.TrimSpace(string(dir)), "internal", "integration_test", "spectest")
	stats := specStats{refused: map[string]int{}}
	for _, version := range []string{"v1", "v2"} {
		files, err := filepath.Glob(filepath.Join(root, version, "testdata", "*.json"))
		if err != nil || len(files) < 70 {
			t.Fatalf("found %d test files of %s: %v", len(files), version, err)
		}
		for _, f := range files {
			t.Run(version+"/"+strings.TrimSuffix(filepath.Base(f), ".json"), func(t *testing.T) {
				newSpec(t, root, f, &stats).run()
			})
		}
	}
	t.Logf("%d modules, %d calls, %d invalid modules; refused by policy: %v",
		stats.modules, stats.calls, stats.invalid, stats.refused)
	if stats.modules < 1500 || stats.calls < 40_000 || stats.invalid < 1500 {
		t.Errorf("too little was run: %+v", stats)
	}
}

type specStats struct {
	modules, calls, invalid int
	refused                 map[string]int
}

type specCommand struct {
	Type     string
	Line     int
	Name, As string
	Filename string
	Kind     string `json:"module_type"`
	Action   struct {
		Type, Field, Module string
		Args                []specValue
	}
}

type specValue struct {
	Type  string
	Lane  string `json:"lane_type"`
	Value any
}

// spec is one file of tests in two engines: modules as they are in the first,
// rewritten in the second.
type spec struct {
	t        *testing.T
	dir      string
	commands []specCommand
	engines  [2]wazero.Runtime
	named    map[string]pair
	last     pair
	all      []pair // those with a memory
	stats    *specStats
	opts     Options
}

// pair is one module in both engines; both are nil if there is none.
type pair [2]api.Module

func newSpec(t *testing.T, root, file string, stats *specStats) *spec {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &spec{t: t, dir: filepath.Dir(file), named: map[string]pair{}, stats: stats,
		opts: Options{MaxMemory: maxPages, MaxTable: math.MaxUint32, Allow: anyImport, linked: true}}
	var doc struct{ Commands []specCommand }
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	s.commands = doc.Commands
	base, err := os.ReadFile(filepath.Join(root, "testdata", "spectest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.engines {
		s.engines[i] = newEngine(t)
		new(meter).link(t, s.engines[i])
		if _, err := s.engines[i].InstantiateWithConfig(t.Context(), base, wazero.NewModuleConfig()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *spec) run() {
	for i := range s.commands {
		c := &s.commands[i]
		switch c.Type {
		case "module":
			name := ""
			if i+1 < len(s.commands) && s.commands[i+1].Type == "register" {
				name = s.commands[i+1].As
			}
			s.module(c, name)
		case "assert_return", "action", "assert_trap", "assert_exhaustion":
			s.action(c)
		case "assert_malformed", "assert_invalid", "assert_unlinkable", "assert_uninstantiable":
			if c.Kind != "text" {
				s.bad(c)
			}
		case "register":
		default:
			s.t.Errorf("line %d: unknown command %q", c.Line, c.Type)
		}
	}
	s.compareState()
}

func (s *spec) read(c *specCommand) []byte {
	wasm, err := os.ReadFile(filepath.Join(s.dir, c.Filename))
	if err != nil {
		s.t.Fatal(err)
	}
	return wasm
}

var numbers = regexp.MustCompile(`"[^"]*"|0x[0-9a-f]+|[0-9]+`)

// module instantiates a module in both engines. One that is refused goes into
// the second as it is, because later ones may import from it.
func (s *spec) module(c *specCommand, name string) {
	wasm := s.read(c)
	config := wazero.NewModuleConfig().WithName(name)
	plain, err := s.engines[0].InstantiateWithConfig(s.t.Context(), wasm, config)
	if err != nil {
		s.t.Fatalf("line %d: the engine refuses the module: %v", c.Line, err)
	}
	code := wasm
	m, refusal := Rewrite(wasm, s.opts)
	if refusal == nil {
		code = m.Wasm
		s.stats.modules++
	} else {
		s.stats.refused[numbers.ReplaceAllString(refusal.Error(), "N")]++
	}
	changed, err := s.engines[1].InstantiateWithConfig(s.t.Context(), code, config)
	if err != nil {
		s.t.Fatalf("line %d: rewritten: %v", c.Line, err)
	}
	p := pair{plain, changed}
	if refusal != nil {
		p = pair{}
	}
	s.last = p
	if refusal == nil && m.MemoryMax > 0 {
		s.all = append(s.all, p)
	}
	if c.Name != "" {
		s.named[c.Name] = p
	}
}

func (s *spec) action(c *specCommand) {
	p := s.last
	if c.Action.Module != "" {
		p = s.named[c.Action.Module]
	}
	if p[0] == nil {
		return
	}
	s.stats.calls++
	var got [2]string
	for i, mod := range p {
		if c.Action.Type == "get" {
			got[i] = fmt.Sprint(mod.ExportedGlobal(c.Action.Field).Get())
			continue
		}
		f := mod.ExportedFunction(c.Action.Field)
		results, err := f.Call(s.t.Context(), s.args(c)...)
		got[i] = fmt.Sprintf("%s %s", s.results(f, results), trap(err))
	}
	if got[0] != got[1] {
		s.t.Errorf("line %d: %s: plain %s, rewritten %s", c.Line, c.Action.Field, got[0], got[1])
	}
}

// results prints results. A reference to a function is an address of the
// engine, so only whether there is one can be compared.
func (s *spec) results(f api.Function, values []uint64) string {
	at, out := 0, ""
	for _, t := range f.Definition().ResultTypes() {
		if at >= len(values) {
			break
		}
		v := values[at]
		at++
		switch {
		case t == api.ValueType(typeFuncref):
			out += fmt.Sprint(v != 0, " ")
		case t == api.ValueType(typeV128) && at < len(values):
			out += fmt.Sprintf("%x:%x ", v, values[at])
			at++
		default:
			out += fmt.Sprintf("%x ", v)
		}
	}
	return out
}

// bad compares what both say about a module that must not run.
func (s *spec) bad(c *specCommand) {
	wasm := s.read(c)
	s.stats.invalid++
	plain, err := s.engines[0].InstantiateWithConfig(s.t.Context(), wasm, wazero.NewModuleConfig().WithName(""))
	m, refusal := Rewrite(wasm, s.opts)
	if refusal != nil {
		if fault.Of(refusal) != fault.Invalid {
			s.t.Errorf("line %d: refused as %v", c.Line, fault.Of(refusal))
		}
		// It may change what it imports before it fails.
		_, _ = s.engines[1].InstantiateWithConfig(s.t.Context(), wasm, wazero.NewModuleConfig().WithName(""))
		return
	}
	changed, err2 := s.engines[1].InstantiateWithConfig(s.t.Context(), m.Wasm, wazero.NewModuleConfig().WithName(""))
	if (err == nil) != (err2 == nil) {
		s.t.Errorf("line %d: %s: plain %v, rewritten %v", c.Line, c.Type, err, err2)
	}
	if err == nil && err2 == nil && m.MemoryMax > 0 {
		s.all = append(s.all, pair{plain, changed})
	}
}

// compareState holds the memories of all instances against each other.
func (s *spec) compareState() {
	for _, p := range s.all {
		a, _ := p[0].Memory().Read(0, p[0].Memory().Size())
		b, _ := p[1].Memory().Read(0, p[1].Memory().Size())
		if !slices.Equal(a, b) {
			s.t.Errorf("memories differ")
		}
	}
}

func (s *spec) args(c *specCommand) []uint64 {
	var args []uint64
	for _, a := range c.Action.Args {
		if lanes, ok := a.Value.([]any); ok {
			args = append(args, vector(s.t, a.Lane, lanes)...)
			continue
		}
		text, _ := a.Value.(string)
		v := number(s.t, a.Type, text)
		if a.Type == "externref" && text != "null" {
			v++ // the engine takes zero for null
		}
		args = append(args, v)
	}
	return args
}

func number(t *testing.T, typ, text string) uint64 {
	switch {
	case text == "" || text == "null":
		return 0
	case text == "nan:canonical" || text == "nan:arithmetic":
		if strings.HasSuffix(typ, "32") {
			return 0x7fc00000
		}
		return 0x7ff8000000000000
	}
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		if strings.HasSuffix(typ, "32") {
			return uint64(uint32(v))
		}
		return uint64(v)
	}
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func vector(t *testing.T, lane string, values []any) []uint64 {
	width, err := strconv.Atoi(lane[1:])
	if err != nil {
		t.Fatal(err)
	}
	v := make([]uint64, 2)
	for i, text := range values {
		bits := number(t, lane, text.(string)) & (1<<width - 1)
		v[i*width/64] |= bits << (i * width % 64)
	}
	return v
}
