-- How far each channel has read the events, its notifications and their results. Addresses are never stored here.
CREATE TABLE channels (
    name TEXT PRIMARY KEY,
    epoch TEXT NOT NULL,
    position INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    channel TEXT NOT NULL,
    message TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    due REAL NOT NULL,
    ended_at TEXT
);
CREATE INDEX deliveries_waiting ON deliveries (channel, due) WHERE status = 'waiting';
CREATE INDEX deliveries_by_channel ON deliveries (channel, id);
