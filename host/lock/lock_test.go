package lock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/host/fault"
)

var (
	digestA = strings.Repeat("a1", 32)
	digestB = strings.Repeat("b2", 32)
)

func TestReadWhatIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.lock")
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("a file that is not there: %v", err)
	}
	f := &File{Modules: map[string]string{"react": digestA, "a": digestB}, Tools: map[string]string{"get": digestA}}
	for range 2 { // the second time it is replaced
		if err := f.Write(path); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	want := &File{Modules: f.Modules, Prompts: map[string]string{}, Tools: f.Tools}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := "{\n  \"version\": 1,\n  \"modules\": {\n    \"a\": \"" + digestB + "\",\n    \"react\": \"" + digestA +
		"\"\n  },\n  \"prompts\": {},\n  \"tools\": {\n    \"get\": \"" + digestA + "\"\n  }\n}\n"
	if string(data) != text {
		t.Errorf("the file:\n%s", data)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A lock that cannot be read does not pass for one that pins nothing.
func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                                 "offset 0",
		`[]`:                               "expected an object",
		`{}`:                               `expected "version": 1`,
		`{"version":2}`:                    `expected "version": 1`,
		`{"version":1,"module":{}}`:        `unknown field "module"`,
		`{"version":1,"modules":{"a":1}}`:  "expected a string",
		`{"version":1,"modules":{"a":""}}`: "64 lower-case hex",
		`{"version":1,"modules":{"a":"` + strings.ToUpper(digestA) + `"}}`:               "64 lower-case hex",
		`{"version":1,"modules":{"a":"` + digestA + `","a":"` + digestB + `"}}`:          `"a"`,
		`{"version":1,"prompts":{}} x`:                                                   "offset",
		`{"version":1,"modules":{"a":"` + strings.Repeat(" ", maxFile) + digestA + `"}}`: "at most 1 MiB",
	} {
		f, err := Decode([]byte(text))
		if f != nil || fault.Of(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
	if _, err := Decode([]byte(`{"version":1,"modules":{"a":"` + digestA + `"}}`)); err != nil {
		t.Errorf("control: %v", err)
	}
}

func TestCompare(t *testing.T) {
	f := &File{Modules: map[string]string{"same": digestA, "other": digestA, "gone": digestA}, Tools: map[string]string{"t": digestA}}
	got := f.Compare(File{
		Modules: map[string]string{"same": digestA, "other": digestB, "new": digestB},
		Prompts: map[string]string{"system": digestA},
		Tools:   map[string]string{"t": digestA},
	})
	want := []Problem{
		{Module, "new", "", digestB}, {Module, "other", digestA, digestB}, {Prompt, "system", "", digestA},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if text := got[0].String(); text != "module new: agent.lock has no entry for it; its sha256 is "+digestB {
		t.Error(text)
	}
	if text := got[1].String(); text != "module other: agent.lock pins the sha256 "+digestA+", found "+digestB {
		t.Error(text)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version":1,"modules":{"a":"` + digestA + `"},"tools":{}}`))
	f.Add([]byte(`{"version":1`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Decode(data)
		if err != nil {
			return
		}
		again, err := Decode(file.Encode())
		if err != nil {
			t.Fatalf("what was encoded is refused: %v", err)
		}
		if len(again.Compare(*file)) > 0 || len(file.Compare(*again)) > 0 {
			t.Errorf("%+v became %+v", file, again)
		}
	})
}
