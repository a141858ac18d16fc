package abi

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/abi/strictjson"
)

// orderedMessages are those with two ways to be read.
var orderedMessages = []struct {
	folder  string
	make    func() any
	short   func(any, *strictjson.Decoder) bool
	long    func(any, *strictjson.Decoder) error
	written func(any) []byte
}{
	{"check_output_request", func() any { return new(CheckOutputRequest) },
		func(m any, d *strictjson.Decoder) bool { return m.(*CheckOutputRequest).readInOrder(d, nil) },
		func(m any, d *strictjson.Decoder) error { return m.(*CheckOutputRequest).readInAnyOrder(d) },
		func(m any) []byte { return m.(*CheckOutputRequest).AppendJSON(nil) }},
	{"check_output_reply", func() any { return new(CheckOutputReply) },
		func(m any, d *strictjson.Decoder) bool { return m.(*CheckOutputReply).readInOrder(d) },
		func(m any, d *strictjson.Decoder) error { return m.(*CheckOutputReply).readInAnyOrder(d) },
		func(m any) []byte { return m.(*CheckOutputReply).AppendJSON(nil) }},
	{"edit", func() any { return new(Edit) },
		func(m any, d *strictjson.Decoder) bool { return m.(*Edit).readInOrder(d) },
		func(m any, d *strictjson.Decoder) error { return m.(*Edit).readInAnyOrder(d) },
		func(m any) []byte { return m.(*Edit).AppendJSON(nil) }},
	{"cut", func() any { return new(Cut) },
		func(m any, d *strictjson.Decoder) bool { return m.(*Cut).readInOrder(d) },
		func(m any, d *strictjson.Decoder) error { return m.(*Cut).readInAnyOrder(d) },
		func(m any) []byte { return m.(*Cut).AppendJSON(nil) }},
}

// goldensOf returns the golden messages of a folder as AppendJSON writes them.
func goldensOf(t testing.TB, folder string, read func([]byte) []byte) (list [][]byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(folder, files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, read(data))
	}
	return list
}

// What AppendJSON writes is read the short way, and nothing is left of it.
func TestWrittenIsInOrder(t *testing.T) {
	for _, o := range orderedMessages {
		for _, data := range goldensOf(t, o.folder, func(data []byte) []byte {
			m := o.make()
			if err := o.long(m, strictjson.NewDecoder(data)); err != nil {
				t.Fatal(o.folder, err)
			}
			return o.written(m)
		}) {
			d, m, want := strictjson.NewDecoder(data), o.make(), o.make()
			if !o.short(m, d) || d.End() != nil {
				t.Errorf("%s: not read in order: %s", o.folder, data)
			}
			if err := o.long(want, strictjson.NewDecoder(data)); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(want, m); diff != "" {
				t.Errorf("%s (-any order +in order):\n%s", data, diff)
			}
		}
	}
}

// A guest's requests have room for matches, made before the call.
func TestRequestUsesItsRoom(t *testing.T) {
	room := make([]int, 0, 12)
	m := &CheckOutputRequest{Text: "old", Texts: []string{"old"}, State: Raw(`1`), Matches: room, Open: 7}
	if err := m.DecodeJSON([]byte(`{"now":1,"seed":"2","stream_pos":3,"text":"new","matches":[0,1,2],"open":3}`)); err != nil {
		t.Fatal(err)
	}
	want := &CheckOutputRequest{Call: Call{Now: 1, Seed: "2"}, StreamPos: 3, Text: "new", Matches: []int{0, 1, 2}, Open: 3}
	if diff := cmp.Diff(want, m); diff != "" || &m.Matches[0] != &room[:1][0] {
		t.Errorf("not in its room, or (-want +got):\n%s", diff)
	}
	if err := m.DecodeJSON([]byte(`{"now":1,"seed":"2","stream_pos":3,"text":"new"}`)); err != nil || m.Matches != nil {
		t.Errorf("%v, matches %v", err, m.Matches)
	}
}

// FuzzInOrder: what the short way reads, the long way reads to the same; what
// the long way refuses, the short way does not take; and where the short way
// gives up it consumes nothing.
func FuzzInOrder(f *testing.F) {
	for i, o := range orderedMessages {
		for _, data := range goldensOf(f, o.folder, func(data []byte) []byte {
			m := o.make()
			if err := o.long(m, strictjson.NewDecoder(data)); err != nil {
				f.Fatal(err)
			}
			return o.written(m)
		}) {
			f.Add(byte(i), string(data))
			f.Add(byte(i), strings.Replace(string(data), ",", ", ", 1))
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, data string) {
		o := orderedMessages[int(kind)%len(orderedMessages)]
		var d strictjson.Decoder
		d.Reset(data)
		from := d.Mark()
		m, want := o.make(), o.make()
		short := o.short(m, &d)
		end := d.Mark()
		d.Back(from)
		err := o.long(want, &d)
		switch {
		case !short && end != from:
			t.Fatalf("%q: not read and yet consumed", data)
		case short && err != nil:
			t.Fatalf("%q: read in order, and refused by %v", data, err)
		case short && (!reflect.DeepEqual(m, want) || d.Mark() != end):
			t.Fatalf("%q (-any order +in order):\n%s", data, cmp.Diff(want, m))
		}
	})
}
