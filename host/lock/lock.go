// Package lock is agent.lock: the digests of the modules, prompts and tools
// that somebody has looked at. It pins what may run under a name, so that a
// file or a server that changed is noticed before it is used.
//
//	{
//	  "version": 1,
//	  "modules": {"react": "<sha256>"},
//	  "prompts": {"system": "<sha256>"},
//	  "tools": {"get_ticket": "<sha256>"}
//	}
//
// Digests are 64 lower-case hex digits: of a module's and a prompt's bytes, and
// of what a server says a tool is.
package lock

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"weir/abi/strictjson"
	"weir/host/fault"
)

// Version is the version of the file's form.
const Version = 1

// maxFile bounds the file; an entry has about a hundred bytes.
const maxFile = 1 << 20

// Kinds of entry.
const (
	Module = "module"
	Prompt = "prompt"
	Tool   = "tool"
)

// File is the content of agent.lock: digests by name. A nil map is an empty one.
type File struct {
	Modules map[string]string
	Prompts map[string]string
	Tools   map[string]string
}

// Read reads a file. One that does not exist is an error that wraps
// fs.ErrNotExist; everything else that is wrong with it is of kind Invalid,
// because a lock that cannot be read must not pass for one that pins nothing.
func Read(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return nil, fault.New(fault.Invalid, "%s: %w", path, err)
	}
	f, err := Decode(data)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s: %w", path, err)
	}
	return f, nil
}

// Write replaces a file in one step, so that whoever reads it finds the old or
// the new one.
func (f *File) Write(path string) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), ".agent.lock-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name())
		}
	}()
	_, err = temp.Write(f.Encode())
	err = errors.Join(err, temp.Chmod(0o644), temp.Close())
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// Encode writes the file's bytes: sorted, an entry a line, so that a change is
// a line in a comparison.
func (f *File) Encode() []byte {
	b := strictjson.AppendInt([]byte("{\n  \"version\": "), Version)
	for _, t := range f.tables() {
		b = strictjson.AppendString(append(b, ",\n  "...), t.name)
		b = appendTable(append(b, ": "...), *t.digests)
	}
	return append(b, "\n}\n"...)
}

func appendTable(b []byte, digests map[string]string) []byte {
	if len(digests) == 0 {
		return append(b, "{}"...)
	}
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(digests)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(append(b, "\n    "...), name)
		b = strictjson.AppendString(append(b, ": "...), digests[name])
	}
	return append(b, "\n  }"...)
}

// Decode reads the file's bytes.
func Decode(data []byte) (*File, error) {
	if len(data) > maxFile {
		return nil, fault.New(fault.Invalid, "expected at most 1 MiB")
	}
	f := &File{}
	d := strictjson.NewDecoder(data)
	version := int64(0)
	err := d.Object(func(name string) (err error) {
		if name == "version" {
			version, err = d.Int()
			return err
		}
		for _, t := range f.tables() {
			if t.name == name {
				*t.digests, err = decodeTable(d)
				return err
			}
		}
		return strictjson.Unknown(name)
	})
	if err == nil {
		err = d.End()
	}
	if err == nil && version != Version {
		err = errors.New("expected \"version\": 1, the only one that this program knows")
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "%w", err)
	}
	return f, nil
}

func decodeTable(d *strictjson.Decoder) (map[string]string, error) {
	digests := map[string]string{}
	err := d.Object(func(name string) error {
		digest, err := d.String()
		if err == nil && !isDigest(digest) {
			err = errors.New("expected digests of 64 lower-case hex digits")
		}
		digests[name] = digest
		return err
	})
	return digests, err
}

// Digest is the digest of a module's or a prompt's bytes.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func isDigest(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == 64
}

type table struct {
	name, kind string
	digests    *map[string]string
}

func (f *File) tables() []table {
	return []table{{"modules", Module, &f.Modules}, {"prompts", Prompt, &f.Prompts}, {"tools", Tool, &f.Tools}}
}

// Problem is one thing that is not what the file names.
type Problem struct {
	Kind   string // Module, Prompt or Tool
	Name   string
	Pinned string // the file's digest; empty when there is no entry
	Found  string // the digest of what is there
}

func (p Problem) String() string {
	if p.Pinned == "" {
		return p.Kind + " " + p.Name + ": agent.lock has no entry for it; its sha256 is " + p.Found
	}
	return p.Kind + " " + p.Name + ": agent.lock pins the sha256 " + p.Pinned + ", found " + p.Found
}

// Compare holds what is there against the file, kind by kind and by name.
// Entries for what is not there say nothing: a lock may serve several
// configurations.
func (f *File) Compare(found File) []Problem {
	var out []Problem
	pinned := f.tables()
	for i, t := range found.tables() {
		for _, name := range slices.Sorted(maps.Keys(*t.digests)) {
			digest := (*t.digests)[name]
			if want := (*pinned[i].digests)[name]; want != digest {
				out = append(out, Problem{Kind: t.kind, Name: name, Pinned: want, Found: digest})
			}
		}
	}
	return out
}
