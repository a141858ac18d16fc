package jetstream

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"weir/host/fault"
	"weir/host/hold"
)

const (
	lockFile  = "lock"
	stateFile = "weir.json"
	// stateFormat is the version of the state directory's own layout.
	stateFormat = 1
)

// directory is a state directory that this process holds.
type directory struct {
	path string
	lock *os.File
}

// state is what the directory says of itself, so that a stream which the server
// passes over because its files are damaged is missed.
type state struct {
	Format int `json:"format"`
	// Damaged is what was found to be lost. It stays until somebody decides, and
	// stands on a line that can be taken out.
	Damaged string   `json:"damaged,omitempty"`
	Cluster string   `json:"cluster,omitempty"`
	Streams []string `json:"streams"`
	// Last is the last sequence of each stream at the last orderly end. It is
	// removed while the directory is in use.
	Last map[string]uint64 `json:"last,omitempty"`
}

func openDirectory(path string) (*directory, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fault.New(fault.Unavailable, "make the state directory: %w", err)
	}
	lock, err := hold.Open(filepath.Join(path, lockFile))
	if errors.Is(err, hold.ErrHeld) {
		return nil, fault.New(fault.Conflict, "the state directory %s is in use by another process: each process needs its own, or all of them one NATS", path)
	}
	if err != nil {
		return nil, fault.New(fault.Unavailable, "lock the state directory: %w", err)
	}
	return &directory{path: path, lock: lock}, nil
}

func (d *directory) release() { d.lock.Close() }

// read returns the zero state for a new directory.
func (d *directory) read() (state, error) {
	path := filepath.Join(d.path, stateFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, d.isNew()
	}
	if err != nil {
		return state{}, fault.New(fault.Unavailable, "read the state directory: %w", err)
	}
	var st state
	if err := json.Unmarshal(data, &st); err != nil {
		return state{}, fault.New(fault.Internal, "%s is damaged: %w", path, err)
	}
	if st.Format != stateFormat {
		return state{}, fault.New(fault.Internal, "%s has format %d: this program knows format %d", path, st.Format, stateFormat)
	}
	return st, nil
}

// isNew refuses what was not made by a store: it might be anything.
func (d *directory) isNew() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fault.New(fault.Unavailable, "read the state directory: %w", err)
	}
	for _, e := range entries {
		if e.Name() == "jetstream" {
			return fault.New(fault.Internal, "%s has data but no %s, which says what they are", d.path, stateFile)
		}
	}
	return nil
}

// write replaces the file in one step.
func (d *directory) write(st state) error {
	st.Format = stateFormat
	data, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(d.path, stateFile)
	if err := writeSynced(path+".new", append(data, '\n')); err != nil {
		return fault.New(fault.Unavailable, "write the state directory: %w", err)
	}
	if err := errors.Join(os.Rename(path+".new", path), syncFolder(d.path)); err != nil {
		return fault.New(fault.Unavailable, "write the state directory: %w", err)
	}
	return nil
}

// sync syncs the server's files.
func (d *directory) sync() error {
	err := filepath.WalkDir(filepath.Join(d.path, "jetstream"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return syncFile(path)
	})
	if err != nil {
		return fault.New(fault.Unavailable, "sync the state directory: %w", err)
	}
	return nil
}

// syncStream syncs what describes a stream, and that it is there.
func (d *directory) syncStream(name string) error {
	streams := filepath.Join(d.path, "jetstream", "$G", "streams")
	stream := filepath.Join(streams, name)
	err := errors.Join(syncFile(filepath.Join(stream, "meta.inf")), syncFile(filepath.Join(stream, "meta.sum")),
		syncFolder(stream), syncFolder(streams))
	if err != nil {
		return fault.New(fault.Unavailable, "sync the state directory: %w", err)
	}
	return nil
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncFolder syncs the names in a folder, where the system can.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
