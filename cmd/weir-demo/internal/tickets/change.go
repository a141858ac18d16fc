package tickets

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"weir/cmd/weir-demo/internal/approval"
)

// change is what an approved change did (4.5).
type change struct {
	ResourceID        string `json:"resource_id"`
	Action            string `json:"action"`
	PreviousPriority  string `json:"previous_priority"`
	NewPriority       string `json:"new_priority"`
	ActorID           string `json:"actor_id"`
	Override          bool   `json:"override"`
	PolicyVersion     string `json:"policy_version"`
	NoteRecorded      bool   `json:"note_recorded"`
	RationaleRecorded bool   `json:"rationale_recorded"`
}

// failure is a change that could not be made although nothing speaks against
// it. The text may be shown (4.5); the cause is for the log.
type failure string

func (f failure) Error() string { return string(f) }

const (
	notApplied failure = "the approved change could not be applied"
	noRows     failure = "the approved change affected no rows"
)

// execute carries out what the claims allow, or nothing: the nonce is used up,
// the ticket changed and the audit written in one transaction, which begins
// with the lock, so two approvals of one ticket follow each other and the
// second finds what the first left.
func (d *desk) execute(ctx context.Context, c *approval.Claims, requestID string) (*change, error) {
	if c.Action != priorityAction {
		return nil, approval.Refusal("unknown approval action: " + c.Action)
	}
	tx, err := d.write.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: begin: %w", notApplied, err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	done, err := d.apply(ctx, tx, c, requestID)
	if err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return nil, fmt.Errorf("%w: commit: %w", notApplied, err)
	}
	return done, nil
}

func (d *desk) apply(ctx context.Context, tx *sql.Tx, c *approval.Claims, requestID string) (*change, error) {
	now := d.now().UTC().Format(time.RFC3339)
	if err := useNonce(ctx, tx, c, now); err != nil {
		return nil, err
	}
	current, err := priorityOf(ctx, tx, c.ResourceID)
	if err != nil {
		return nil, err
	}
	if err := c.Verify(approval.Bound{Action: priorityAction, ResourceID: c.ResourceID, RequestID: requestID, Current: &current}); err != nil {
		return nil, err
	}
	choice, override, err := decidePriority(current, c)
	if err != nil {
		return nil, err
	}
	done := &change{ResourceID: c.ResourceID, Action: priorityAction, PreviousPriority: current, NewPriority: choice,
		ActorID: c.ActorID, Override: override, PolicyVersion: policyVersion,
		NoteRecorded: written(c.Note), RationaleRecorded: written(c.Rationale)}
	if err := setPriority(ctx, tx, done, now); err != nil {
		return nil, err
	}
	return done, record(ctx, tx, done, c, now)
}

// useNonce takes the approval's one use, which comes back if the rest fails.
func useNonce(ctx context.Context, tx *sql.Tx, c *approval.Claims, now string) error {
	n, err := affected(tx.ExecContext(ctx, `INSERT INTO approval_nonces (nonce, action, resource_id, actor_id, request_id, consumed_at)
		VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`, c.Nonce, c.Action, c.ResourceID, c.ActorID, c.RequestID, now))
	if err != nil {
		return fmt.Errorf("%w: nonce: %w", notApplied, err)
	}
	if n == 0 {
		return alreadyUsed
	}
	return nil
}

func priorityOf(ctx context.Context, tx *sql.Tx, id string) (current string, err error) {
	err = tx.QueryRowContext(ctx, "SELECT priority FROM tickets WHERE id = ?", id).Scan(&current)
	if errors.Is(err, sql.ErrNoRows) {
		return "", refusal(id + " does not exist")
	}
	if err != nil {
		return "", fmt.Errorf("%w: ticket: %w", notApplied, err)
	}
	return current, nil
}

func setPriority(ctx context.Context, tx *sql.Tx, done *change, now string) error {
	n, err := affected(tx.ExecContext(ctx, "UPDATE tickets SET priority = ?, updated_at = ? WHERE id = ? AND priority = ?",
		done.NewPriority, now, done.ResourceID, done.PreviousPriority))
	if err != nil {
		return fmt.Errorf("%w: update: %w", notApplied, err)
	}
	if n != 1 {
		return noRows
	}
	return nil
}

// record writes the audit's row, which names who decided and why, and the
// ticket's event, which names neither: a model reads it.
func record(ctx context.Context, tx *sql.Tx, done *change, c *approval.Claims, now string) error {
	policy, err := json.Marshal(map[string]any{"policy_version": policyVersion, "expected_choice": c.ExpectedChoice,
		"override": done.Override, "override_requested": c.OverrideRequested})
	if err != nil {
		return fmt.Errorf("%w: policy context: %w", notApplied, err)
	}
	row, err := tx.ExecContext(ctx, `INSERT INTO ticket_audit (ticket_id, action, previous_priority, new_priority, actor_id,
		request_id, nonce, rationale, payload, policy_context, recorded_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		done.ResourceID, done.Action, done.PreviousPriority, done.NewPriority, done.ActorID,
		c.RequestID, c.Nonce, c.Rationale, string(c.Payload), string(policy), now)
	if err != nil {
		return fmt.Errorf("%w: audit: %w", notApplied, err)
	}
	number, err := row.LastInsertId()
	if err != nil {
		return fmt.Errorf("%w: audit: %w", notApplied, err)
	}
	if err := addEvent(ctx, tx, Event{fmt.Sprintf("EVT-%d", firstChange+number), done.ResourceID, now, "status_change", "Support desk",
		fmt.Sprintf("Priority changed from %s to %s after a person approved it.", done.PreviousPriority, done.NewPriority)}); err != nil {
		return fmt.Errorf("%w: %w", notApplied, err)
	}
	return nil
}

// firstChange is before the numbers of events that changes make, well above
// those of the shipped ones.
const firstChange = 9000

func affected(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}
