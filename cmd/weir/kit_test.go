package main

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write kit.txtar")

// The kit that the program carries is abi and pdk as they are.
func TestKitIsCurrent(t *testing.T) {
	want, err := packKit(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("kit.txtar", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want, kitArchive) {
		t.Error("kit.txtar differs from abi and pdk: `make kit` writes it")
	}
	// No line of a file reads like the beginning of another.
	for _, f := range txtar.Parse(want).Files[1:] {
		data, err := os.ReadFile("../../" + f.Name)
		if err != nil || !bytes.Equal(data, f.Data) {
			t.Errorf("%s does not come out as it went in: %v", f.Name, err)
		}
	}
}
