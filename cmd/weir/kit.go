package main

import (
	_ "embed"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/tools/txtar"
)

// kitArchive is the guest kit, abi and pdk without their tests, so that a
// plugin can be written where this repository is not. It is a text archive: a
// change of the kit is then a change that people can read. `make kit` writes
// it; a test compares it with the packages.
//
//go:embed kit.txtar
var kitArchive []byte

// scaffoldArchive is what stands beside the kit in a new plugin.
//
//go:embed scaffold.txtar
var scaffoldArchive []byte

const kitComment = "The guest kit that `weir plugin new` writes. Generated from abi and pdk by `make kit`; not to be edited.\n\n"

const kitModule = "module weir\n\ngo 1.26.0\n"

// packKit packs the kit from the module's root.
func packKit(root fs.FS) ([]byte, error) {
	a := &txtar.Archive{Comment: []byte(kitComment), Files: []txtar.File{{Name: "go.mod", Data: []byte(kitModule)}}}
	for _, dir := range []string{"abi", "pdk"} {
		err := fs.WalkDir(root, dir, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return fs.SkipDir
			case d.IsDir(), path.Ext(name) != ".go" && path.Ext(name) != ".s", strings.HasSuffix(name, "_test.go"):
				return nil
			}
			data, err := fs.ReadFile(root, name)
			a.Files = append(a.Files, txtar.File{Name: name, Data: data})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return txtar.Format(a), nil
}
