-- What makes an approval single use, and who changed what. Both tables only
-- grow. The triggers before INSERT are there because INSERT OR REPLACE removes
-- the old row without asking the triggers before DELETE.

CREATE TABLE approval_nonces (
    nonce       TEXT PRIMARY KEY NOT NULL,
    action      TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    actor_id    TEXT NOT NULL,
    request_id  TEXT NOT NULL,
    consumed_at TEXT NOT NULL
) STRICT;

-- A used nonce makes the statement do nothing, so that its row count tells.
CREATE TRIGGER approval_nonces_once BEFORE INSERT ON approval_nonces
    WHEN EXISTS (SELECT 1 FROM approval_nonces WHERE nonce = NEW.nonce)
BEGIN
    SELECT RAISE(IGNORE);
END;

CREATE TRIGGER approval_nonces_no_update BEFORE UPDATE ON approval_nonces
BEGIN
    SELECT RAISE(ABORT, 'approval_nonces is append-only');
END;

CREATE TRIGGER approval_nonces_no_delete BEFORE DELETE ON approval_nonces
BEGIN
    SELECT RAISE(ABORT, 'approval_nonces is append-only');
END;

CREATE TABLE ticket_audit (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    ticket_id         TEXT NOT NULL REFERENCES tickets (id),
    action            TEXT NOT NULL,
    previous_priority TEXT NOT NULL,
    new_priority      TEXT NOT NULL,
    actor_id          TEXT NOT NULL CHECK (trim(actor_id) <> ''),
    request_id        TEXT NOT NULL CHECK (trim(request_id) <> ''),
    nonce             TEXT NOT NULL UNIQUE REFERENCES approval_nonces (nonce),
    rationale         TEXT,
    payload           TEXT NOT NULL CHECK (json_valid(payload)),
    policy_context    TEXT NOT NULL CHECK (json_valid(policy_context)),
    recorded_at       TEXT NOT NULL
) STRICT;

CREATE INDEX ticket_audit_of_ticket ON ticket_audit (ticket_id);

CREATE TRIGGER ticket_audit_no_replace BEFORE INSERT ON ticket_audit
    WHEN EXISTS (SELECT 1 FROM ticket_audit WHERE id = NEW.id OR nonce = NEW.nonce)
BEGIN
    SELECT RAISE(ABORT, 'ticket_audit is append-only');
END;

CREATE TRIGGER ticket_audit_no_update BEFORE UPDATE ON ticket_audit
BEGIN
    SELECT RAISE(ABORT, 'ticket_audit is append-only');
END;

CREATE TRIGGER ticket_audit_no_delete BEFORE DELETE ON ticket_audit
BEGIN
    SELECT RAISE(ABORT, 'ticket_audit is append-only');
END;
