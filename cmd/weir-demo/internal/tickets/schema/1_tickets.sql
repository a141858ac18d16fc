-- The tickets of the support desk and what happened to them. Times are RFC 3339
-- in UTC, so their texts sort as times do.

CREATE TABLE tickets (
    position        INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    subject         TEXT NOT NULL,
    status          TEXT NOT NULL CHECK (status IN ('open', 'resolved')),
    priority        TEXT NOT NULL CHECK (priority IN ('low', 'medium', 'high', 'urgent')),
    description     TEXT NOT NULL,
    customer_name   TEXT NOT NULL,
    order_reference TEXT,
    assigned_to     TEXT,
    created_at      TEXT NOT NULL,
    updated_at      TEXT NOT NULL
) STRICT;

CREATE INDEX tickets_newest ON tickets (created_at DESC, position);

CREATE TABLE ticket_events (
    position    INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    ticket_id   TEXT NOT NULL REFERENCES tickets (id),
    occurred_at TEXT NOT NULL,
    event_type  TEXT NOT NULL CHECK (event_type IN
        ('customer_message', 'support_note', 'shipping_update', 'refund_update', 'status_change')),
    author      TEXT NOT NULL,
    summary     TEXT NOT NULL
) STRICT;

CREATE INDEX ticket_events_newest ON ticket_events (ticket_id, occurred_at DESC, position DESC);
