package tickets

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"modernc.org/sqlite"
)

// Bounds of the two pools. SQLite has one writer at a time whatever the pool
// allows: more connections would only wait for each other's lock.
const (
	writers = 1
	readers = 4
	// busy is how long a statement waits for a lock at most.
	busy = 5 * time.Second
	// openTimeout bounds opening and migrating.
	openTimeout = 30 * time.Second
)

// desk is the database of the tickets. Tools read through connections that
// cannot write.
type desk struct {
	read  *sql.DB
	write *sql.DB
	now   func() time.Time
}

// openDesk opens the database in the file at path, or a new one in memory
// without a path, and brings it to the newest version.
func openDesk(path string, now func() time.Time) (*desk, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	d := &desk{now: now}
	if err := d.open(ctx, path); err != nil {
		d.close()
		return nil, fmt.Errorf("tickets database: %w", err)
	}
	return d, nil
}

func (d *desk) open(ctx context.Context, path string) error {
	write, read, err := sources(path)
	if err != nil {
		return err
	}
	if d.write, err = pool(write, writers); err != nil {
		return err
	}
	if err := migrate(ctx, d.write, migrations()); err != nil {
		return err
	}
	if d.read, err = pool(read, readers); err != nil {
		return err
	}
	return d.read.PingContext(ctx)
}

// close ends every connection; whoever waits for one gets an error. It may be
// called twice.
func (d *desk) close() {
	for _, db := range []*sql.DB{d.read, d.write} {
		if db != nil {
			_ = db.Close() // committed is committed; there is nothing to save
		}
	}
}

// pool keeps its connections: a database in memory ends with its last one.
func pool(source string, size int) (*sql.DB, error) {
	connector, err := sqlite.NewConnector(source)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// sources are the database as the writer and as the readers open it. A
// transaction of the writer takes the lock when it begins, so what it reads
// cannot change before it writes.
func sources(path string) (write, read string, err error) {
	name := url.URL{Scheme: "file", OmitHost: true, Path: "/" + uuid.NewString()}
	common := url.Values{
		"_timeout":   {fmt.Sprint(busy.Milliseconds())},
		"_fk":        {"on"},
		"_dqs":       {"0"},
		"_defensive": {"1"},
	}
	writing, reading := maps.Clone(common), maps.Clone(common)
	writing.Set("_txlock", "immediate")
	reading.Set("mode", "ro")
	reading.Set("_query_only", "on")
	if path == "" {
		writing.Set("vfs", "memdb")
		reading.Set("vfs", "memdb")
	} else {
		if path, err = filepath.Abs(path); err != nil {
			return "", "", err
		}
		name.Path = filepath.ToSlash(path)
		writing.Set("_journal", "WAL")
		writing.Set("_sync", "FULL")
	}
	return name.String() + "?" + writing.Encode(), name.String() + "?" + reading.Encode(), nil
}
