package tickets

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func desks(t *testing.T, path string) *desk {
	t.Helper()
	d, err := openDesk(path, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	return d
}

// The audit and the used nonces only grow, whoever tries and however; the
// statements are proved by the same ones on another table.
func TestAppendOnly(t *testing.T) {
	s, ts := open(t, Options{Database: filepath.Join(t.TempDir(), "tickets ?#%41.db")})
	if status, text := send(t, ts, body(t, token("n", nil), requestID)); status != 200 {
		t.Fatal(text)
	}
	const audit = "ticket_audit is append-only"
	const nonces = "approval_nonces is append-only"
	for statement, want := range map[string]string{
		"UPDATE ticket_audit SET actor_id = 'x'":                         audit,
		"UPDATE ticket_audit SET id = id":                                audit,
		"UPDATE OR REPLACE ticket_audit SET id = 5":                      audit,
		"DELETE FROM ticket_audit":                                       audit,
		"DELETE FROM ticket_audit WHERE id = 1":                          audit,
		"INSERT OR REPLACE INTO ticket_audit SELECT * FROM ticket_audit": audit,
		`INSERT OR REPLACE INTO ticket_audit SELECT 7, ticket_id, action, previous_priority, new_priority, 'x', request_id, nonce,
			rationale, payload, policy_context, recorded_at FROM ticket_audit`: audit,
		"UPDATE approval_nonces SET actor_id = 'x'": nonces,
		"DELETE FROM approval_nonces":               nonces,
		"DELETE FROM tickets WHERE id = 'TKT-1001'": "FOREIGN KEY constraint failed",
		`INSERT INTO ticket_audit SELECT 7, ticket_id, action, previous_priority, new_priority, 'x', request_id, 'other',
			rationale, payload, policy_context, recorded_at FROM ticket_audit`: "FOREIGN KEY constraint failed",
		"UPDATE tickets SET priority = 'asap'":                "CHECK constraint failed",
		"UPDATE tickets SET subject = 1.5e3, priority = NULL": "NOT NULL constraint failed",
		// the controls
		"UPDATE ticket_events SET author = 'x'": "",
		"DELETE FROM ticket_events":             "",
		"INSERT INTO approval_nonces SELECT 'new', action, resource_id, actor_id, request_id, consumed_at FROM approval_nonces": "",
	} {
		tx, err := s.desk.write.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tx.ExecContext(t.Context(), statement)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", statement, err, want)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
	// A replacement of a used nonce is not made, and is not an error either.
	n, err := affected(s.desk.write.ExecContext(t.Context(), "INSERT OR REPLACE INTO approval_nonces VALUES ('n', 'x', 'x', 'x', 'x', 'x')"))
	if err != nil || n != 0 || count(t, s, "approval_nonces WHERE actor_id = 'support-rep-1'") != 1 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// What tools read with cannot write, in a file and in memory; the writer can.
func TestReadersCannotWrite(t *testing.T) {
	for name, path := range map[string]string{"memory": "", "file": filepath.Join(t.TempDir(), "tickets.db")} {
		d := desks(t, path)
		const statement = "UPDATE tickets SET priority = 'low'"
		for _, before := range []string{"", "PRAGMA query_only = off; "} {
			if _, err := d.read.ExecContext(t.Context(), before+statement); err == nil || !strings.Contains(err.Error(), "readonly") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n, err := affected(d.write.ExecContext(t.Context(), statement)); err != nil || n != 11 {
			t.Errorf("%s: the writer changed %d rows, %v", name, n, err)
		}
	}
}

// A file keeps what was changed and what was used up; memory keeps nothing, and
// no two share it.
func TestReopen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tickets.db")
	for path, second := range map[string]string{
		file: `{"ok":false,"result":{"refused":"this approval has already been used"}}`,
		"":   committed,
	} {
		s, ts := open(t, Options{Database: path})
		if _, text := send(t, ts, body(t, token("n", nil), requestID)); text != committed {
			t.Fatalf("%q: %s", path, text)
		}
		if path != "" {
			ts.Close()
			s.Close()
			s.Close()
		}
		_, ts = open(t, Options{Database: path})
		if _, text := send(t, ts, body(t, token("n", nil), requestID)); text != second {
			t.Errorf("%q opened again: %s", path, text)
		}
	}
}

// Migrations: from every version on, none twice, none by halves, never back.
func TestMigrate(t *testing.T) {
	ctx := t.Context()
	for version := range len(migrations()) {
		file := filepath.Join(t.TempDir(), "tickets.db")
		write, _, err := sources(file)
		if err != nil {
			t.Fatal(err)
		}
		db, err := pool(write, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := migrate(ctx, db, migrations()[:version]); err != nil {
			t.Fatal(err)
		}
		broken := append(migrations()[:version:version], migration{"CREATE TABLE half (x); CREATE TABLE half (x);", nil})
		if err := migrate(ctx, db, broken); err == nil || !strings.Contains(err.Error(), "already exists") {
			t.Errorf("from %d: a migration that fails: %v", version, err)
		}
		d := desks(t, file)
		var tables int
		if err := d.read.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('tickets', 'ticket_audit', 'half')").Scan(&tables); err != nil || tables != 2 {
			t.Errorf("from %d: %d tables, %v", version, tables, err)
		}
		if _, err := d.write.ExecContext(ctx, "PRAGMA user_version = 99"); err != nil {
			t.Fatal(err)
		}
		if _, err := openDesk(file, time.Now); err == nil || !strings.Contains(err.Error(), "it has version 99, expected at most 2") {
			t.Errorf("from %d: a newer database: %v", version, err)
		}
	}
	if _, err := openDesk(filepath.Join(t.TempDir(), "none", "tickets.db"), time.Now); err == nil {
		t.Error("a file in a folder that does not exist is opened")
	}
}

// Readers are bounded, and a caller waits for one no longer than it likes.
func TestBoundedReaders(t *testing.T) {
	d := desks(t, "")
	for range readers {
		conn, err := d.read.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := d.search(ctx, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("search: %v", err)
	}
	if _, _, err := d.get(ctx, "TKT-1001"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("get: %v", err)
	}
}

// 5.2: a database that fails is an internal error that says no more.
func TestDatabaseFails(t *testing.T) {
	c, s := connectTo(t)
	s.desk.close()
	for tool, arguments := range map[string]string{"search_tickets": "{}", "get_ticket": `{"ticket_id":"TKT-1001"}`} {
		text, failed, err := c.Call(t.Context(), tool, []byte(arguments))
		if err != nil || !failed || text != "Error: The tickets database operation failed" {
			t.Errorf("%s: %q, %v, %v", tool, text, failed, err)
		}
	}
}

// A transaction of the writer holds the lock from its beginning, so what it
// reads first cannot be changed by another process before it writes.
func TestWriterLocksAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tickets.db")
	one, two := desks(t, file), desks(t, file)
	tx, err := one.write.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := two.write.BeginTx(ctx, nil); err == nil {
		t.Error("two transactions hold the lock")
	}
	if _, err := two.search(t.Context(), nil, nil); err != nil {
		t.Errorf("a reader waits for a writer: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if tx, err = two.write.BeginTx(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}
