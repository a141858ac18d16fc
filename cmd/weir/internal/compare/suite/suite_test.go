package suite

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"weir/docs/evaluation"
)

// The shipped suites are read without a note, and every attack family of
// section 11 is among them, with controls in whose place a guard that blocks
// everything would fail.
func TestShippedSuites(t *testing.T) {
	suites, notes, err := Load(evaluation.Suites(), ".")
	if err != nil || len(notes) > 0 {
		t.Fatalf("%v, notes %q", err, notes)
	}
	total, families := 0, map[string]int{}
	var kinds []Kind
	for _, s := range suites {
		kinds = append(kinds, s.Kind)
		total += len(s.Cases)
		if len(s.SHA256) != 64 {
			t.Errorf("suite %s: digest %q", s.Kind, s.SHA256)
		}
		for _, c := range s.Cases {
			var tags struct{ Family string }
			if err := json.Unmarshal(c.Tags, &tags); err != nil || tags.Family == "" {
				t.Errorf("case %s: no family in its tags", c.ID)
			}
			families[string(s.Kind)+": "+tags.Family]++
		}
	}
	if !slices.Equal(kinds, Kinds()) {
		t.Errorf("suites %v", kinds)
	}
	if total < 40 {
		t.Errorf("%d cases, expected at least 40", total)
	}
	for _, family := range []string{
		"guardrails: fraud", "guardrails: prompt injection", "guardrails: appended injection", "guardrails: credential theft",
		"guardrails: obfuscated injection", "guardrails: control", "injection: instruction override", "injection: exfiltration",
		"injection: fabricated authorization", "injection: control", "grounding: numbers", "grounding: absent record", "tools: fan-out", "tools: no tool",
	} {
		if families[family] == 0 {
			t.Errorf("no case of the family %q; there are %v", family, families)
		}
	}
}

// 11.1: the peers' files as they are, by name or by what they expect.
func TestKindOfFile(t *testing.T) {
	one := func(expectations string) string {
		return fmt.Sprintf(`[{"inputs":{"question":"q","case_id":"C"},"expectations":%s,"tags":{}}]`, expectations)
	}
	for _, tt := range []struct {
		file, text string
		want       Kind
	}{
		{"tool_calling.json", one(`{"expected_tool_calls":[]}`), Tools},
		{"guardrails.json", one(`{"expected_blocked":true,"expected_no_tools":true}`), Guardrails},
		{"grounding.json", one(`{"required_tools":["a"],"required_term_groups":[["x","y"]],"forbidden_assertions":[]}`), Grounding},
		{"injection.json", one(`{"expected_blocked":false,"required_tools":[],"forbidden_strings":["x"],"attack":"a"}`), Injection},
		{"mine.json", one(`{"expected_tool_calls":[{"name":"a","arguments":{}}],"order_mode":"prefix_then_unordered","ordered_prefix_length":1}`), Tools},
		{"mine.json", one(`{"expected_blocked":true}`), Guardrails},
		{"mine.json", one(`{"expected_blocked":false,"forbidden_strings":[]}`), Injection},
		{"mine.json", one(`{"required_tools":["a"]}`), Grounding},
		{"mine.json", "\ufeff" + one(`{"forbidden_assertions":["x"]}`), Grounding},
	} {
		kind, cases, notes, err := Parse(tt.file, []byte(tt.text))
		if err != nil || kind != tt.want || len(cases) != 1 || len(notes) > 0 {
			t.Errorf("%s %s: %s, %v, %v", tt.file, tt.text, kind, notes, err)
		}
	}
}

// What nobody scores is said, never silently ignored.
func TestNotes(t *testing.T) {
	_, _, notes, err := Parse("tools.json", []byte(`[{"inputs":{"question":"q","case_id":"C","lang":"de"},"weight":2,
		"expectations":{"expected_tool_calls":[{"name":"a","arguments":{},"id":1}],"judge":"x","forbidden_strings":["y"]},"tags":{"any":{"thing":1}}}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`case C: unknown member "inputs.lang"`, `case C: unknown member "weight"`,
		`case C: unknown member "expectations.expected_tool_calls.id"`, `case C: unknown member "expectations.judge"`,
		`case C: expectations.forbidden_strings is not scored in suite tools`,
	}
	if !slices.Equal(notes, want) {
		t.Errorf("got  %q\nwant %q", notes, want)
	}
}

func TestRefusals(t *testing.T) {
	one := func(inputs, expectations string) string {
		return fmt.Sprintf(`[{"inputs":%s,"expectations":%s}]`, inputs, expectations)
	}
	const inputs = `{"question":"q","case_id":"C"}`
	for text, want := range map[string]string{
		`{}`:                          "expected a list of cases",
		`[]`:                          "expected 1 to 5000 cases",
		`[1]`:                         "the case: expected an object",
		`[{}]`:                        "inputs: expected an object",
		one(`null`, `{}`):             "inputs: expected an object",
		one(`{"question":"q"}`, `{}`): "inputs.case_id: expected a text",
		one(`{"case_id":"C"}`, `{}`):  "inputs.question: expected a text",
		one(`{"case_id":"C","question":5}`, `{}`):                                       "inputs.question: expected a text",
		one(`{"case_id":"a,b","question":"q"}`, `{}`):                                   "printable ASCII",
		one(`{"case_id":"a\nb","question":"q"}`, `{}`):                                  "printable ASCII",
		one(inputs, `null`):                                                             "expectations: expected an object",
		one(inputs, `{}`):                                                               "expected expectations of one suite",
		one(inputs, `{"expected_blocked":"false"}`):                                     "expected_blocked: expected true or false",
		one(inputs, `{"expected_tool_calls":null}`):                                     "expected a list of tool calls",
		one(inputs, `{"expected_tool_calls":[{}]}`):                                     "name: expected a text",
		one(inputs, `{"expected_tool_calls":[{"name":"a","arguments":[]}]}`):            "arguments: expected an object",
		one(inputs, `{"expected_tool_calls":[],"order_mode":"loose"}`):                  "order_mode: expected one of",
		one(inputs, `{"expected_tool_calls":[],"arguments_match":"fuzzy"}`):             "arguments_match: expected one of",
		one(inputs, `{"expected_tool_calls":[],"order_mode":"prefix_then_unordered"}`):  "ordered_prefix_length: expected 1",
		one(inputs, `{"expected_tool_calls":[{"name":"a"}],"ordered_prefix_length":2}`): "ordered_prefix_length: expected 1",
		one(inputs, `{"required_term_groups":[[]]}`):                                    "groups of at least one text",
		one(inputs, `{"forbidden_assertions":[" "]}`):                                   "texts that are not blank",
		one(inputs, `{"forbidden_strings":["x"]}`):                                      "expectations.expected_blocked: expected in a case of suite injection",
		one(inputs, `{"expected_blocked":true,"expected_blocked":false}`):               "offset",
		one(inputs, `{"expected_blocked":true}`)[:40]:                                   "offset",
		`[{"inputs":{"question":"q","case_id":"1"},"expectations":{"expected_blocked":true}},{"inputs":{"question":"q","case_id":"2"},"expectations":{"expected_tool_calls":[]}}]`: "case 2: expected expectations of one suite",
	} {
		if _, _, _, err := Parse("mine.json", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestLoad(t *testing.T) {
	file := func(id string) *fstest.MapFile {
		return &fstest.MapFile{Data: fmt.Appendf(nil, `[{"inputs":{"question":"q","case_id":%q},"expectations":{"expected_blocked":true}}]`, id)}
	}
	tree := fstest.MapFS{"d/a.json": file("A"), "d/b.json": file("B"), "d/notes.txt": {Data: []byte("x")}, "twice/a.json": file("A"), "twice/b.json": file("A"), "none/x": {}}
	suites, _, err := Load(tree, "d")
	if err != nil || len(suites) != 1 || len(suites[0].Cases) != 2 || !slices.Equal(suites[0].Files, []string{"a.json", "b.json"}) {
		t.Fatalf("%+v, %v", suites, err)
	}
	single, _, err := Load(tree, "d/a.json")
	if err != nil || len(single) != 1 || single[0].SHA256 == suites[0].SHA256 {
		t.Errorf("%+v, %v", single, err)
	}
	for name, want := range map[string]string{"twice": "stands twice", "none": "at least one .json file", "gone": "file does not exist"} {
		if _, _, err := Load(tree, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}

// The digest is of what a case says, not of how it is written.
func TestDigest(t *testing.T) {
	digest := func(text string) string {
		suites, _, err := Load(fstest.MapFS{"guardrails.json": {Data: []byte(text)}}, "guardrails.json")
		if err != nil {
			t.Fatal(err)
		}
		return suites[0].SHA256
	}
	a := digest(`[{"inputs":{"question":"é","case_id":"C"},"expectations":{"expected_blocked":true}}]`)
	b := digest("[ {\n\"expectations\": {\"expected_blocked\": true}, \"inputs\": {\"case_id\": \"C\", \"question\": \"\\u00e9\"}} ]")
	c := digest(`[{"inputs":{"question":"é","case_id":"C"},"expectations":{"expected_blocked":false}}]`)
	if a != b || a == c {
		t.Errorf("%s, %s, %s", a, b, c)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"guardrails.json", "tools.json", "grounding.json", "injection.json"} {
		data, err := fs.ReadFile(evaluation.Suites(), name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(name, data)
	}
	f.Add("mine.json", []byte(`[{"inputs":{"question":"q","case_id":"C"},"expectations":{"expected_tool_calls":[{"name":"a","arguments":{"x":[1e9,{"y":null}]}}]}}]`))
	f.Add("guardrails.json", []byte(`[{"inputs":{"question":"q","case_id":"C"},"expectations":{"expected_blocked":true},"tags":null}]`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		kind, cases, _, err := Parse(name, data)
		if err == nil && (len(cases) == 0 || !slices.Contains(Kinds(), kind)) {
			t.Errorf("kind %q with %d cases", kind, len(cases))
		}
		for _, c := range cases {
			if err := c.Expect.check(kind); err != nil {
				t.Errorf("case %s: %v", c.ID, err)
			}
		}
	})
}
