package tickets

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// search lists tickets, newest first. A blank status is no filter.
func (d *desk) search(ctx context.Context, status *string, limit *int64) (searchResult, error) {
	r := searchResult{Filters: filters{Limit: defaultLimit}, Tickets: []listed{}}
	if limit != nil {
		r.Filters.Limit = min(max(*limit, minLimit), maxLimit)
	}
	if status != nil && strings.TrimSpace(*status) != "" {
		trimmed := strings.TrimSpace(*status)
		r.Filters.Status = &trimmed
	}
	rows, err := d.read.QueryContext(ctx, `SELECT id, subject, status, priority, customer_name, created_at FROM tickets
		WHERE ?1 IS NULL OR status = ?1 COLLATE NOCASE ORDER BY created_at DESC, position LIMIT ?2`,
		r.Filters.Status, r.Filters.Limit)
	if err != nil {
		return r, err
	}
	r.Tickets, err = collect(rows, func(t *listed) []any {
		return []any{&t.ID, &t.Subject, &t.Status, &t.Priority, &t.CustomerName, &t.CreatedAt}
	})
	r.Count = len(r.Tickets)
	return r, err
}

// get finds one ticket by its exact id, with its history, newest first, both as
// of one moment.
func (d *desk) get(ctx context.Context, id string) (r getResult, found bool, err error) {
	tx, err := d.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return r, false, err
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	t := &r.Ticket
	err = tx.QueryRowContext(ctx, `SELECT id, subject, status, priority, description, customer_name, order_reference,
		assigned_to, created_at, updated_at FROM tickets WHERE id = ?`, id).Scan(&t.ID, &t.Subject, &t.Status, &t.Priority,
		&t.Description, &t.CustomerName, &t.OrderReference, &t.AssignedTo, &t.CreatedAt, &t.UpdatedAt)
	if errors.Is(err, sql.ErrNoRows) {
		return r, false, nil
	}
	if err != nil {
		return r, false, err
	}
	rows, err := tx.QueryContext(ctx, `SELECT id, ticket_id, occurred_at, event_type, author, summary FROM ticket_events
		WHERE ticket_id = ? ORDER BY occurred_at DESC, position DESC`, id)
	if err != nil {
		return r, false, err
	}
	r.History, err = collect(rows, func(e *Event) []any {
		return []any{&e.ID, &e.TicketID, &e.OccurredAt, &e.EventType, &e.Author, &e.Summary}
	})
	r.HistoryCount = len(r.History)
	return r, err == nil, err
}

// collect reads every row into a T whose fields columns names, and closes rows.
func collect[T any](rows *sql.Rows, columns func(*T) []any) ([]T, error) {
	defer rows.Close()
	all := []T{}
	for rows.Next() {
		var one T
		if err := rows.Scan(columns(&one)...); err != nil {
			return all, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}
