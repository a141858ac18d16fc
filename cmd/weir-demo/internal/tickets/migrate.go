package tickets

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
)

var (
	//go:embed schema/1_tickets.sql
	ticketsSchema string
	//go:embed schema/2_approvals.sql
	approvalsSchema string
)

// A migration takes the database from one version to the next. What is
// released is never edited: a change is a new migration.
type migration struct {
	script string
	fill   func(context.Context, *sql.Tx) error // nil: no data
}

func migrations() []migration {
	return []migration{{ticketsSchema, seed}, {approvalsSchema, nil}}
}

// migrate applies what is missing, each migration in a transaction of its own
// that also notes the version. A database of a newer program is refused: what
// it holds cannot be known.
func migrate(ctx context.Context, db *sql.DB, all []migration) error {
	for {
		done, err := migrateOne(ctx, db, all)
		if done || err != nil {
			return err
		}
	}
}

func migrateOne(ctx context.Context, db *sql.DB, all []migration) (done bool, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	var version int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return false, err
	}
	if version < 0 || version > len(all) {
		return false, fmt.Errorf("it has version %d, expected at most %d", version, len(all))
	}
	if version == len(all) {
		return true, nil
	}
	if err := all[version].apply(ctx, tx); err != nil {
		return false, fmt.Errorf("migration %d: %w", version+1, err)
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version+1)); err != nil {
		return false, err
	}
	return false, tx.Commit()
}

func (m migration) apply(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, m.script); err != nil {
		return err
	}
	if m.fill == nil {
		return nil
	}
	return m.fill(ctx, tx)
}

// seed puts the tickets of 5.7 in, the newest data that this program ships.
func seed(ctx context.Context, tx *sql.Tx) error {
	for _, t := range allTickets() {
		if _, err := tx.ExecContext(ctx, `INSERT INTO tickets (id, subject, status, priority, description, customer_name,
			order_reference, assigned_to, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			t.ID, t.Subject, t.Status, t.Priority, t.Description, t.CustomerName,
			t.OrderReference, t.AssignedTo, t.CreatedAt, t.UpdatedAt); err != nil {
			return fmt.Errorf("ticket %s: %w", t.ID, err)
		}
	}
	for _, e := range allEvents() {
		if err := addEvent(ctx, tx, e); err != nil {
			return err
		}
	}
	return nil
}

func addEvent(ctx context.Context, tx *sql.Tx, e Event) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO ticket_events (id, ticket_id, occurred_at, event_type, author, summary)
		VALUES (?, ?, ?, ?, ?, ?)`, e.ID, e.TicketID, e.OccurredAt, e.EventType, e.Author, e.Summary)
	if err != nil {
		return fmt.Errorf("event %s: %w", e.ID, err)
	}
	return nil
}
