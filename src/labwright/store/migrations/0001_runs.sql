-- A record is the complete value as JSON. The other columns are computed from it, so they cannot disagree.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE runs (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    record TEXT NOT NULL,
    blocked_by INTEGER NOT NULL DEFAULT 0,
    events_offset INTEGER NOT NULL DEFAULT 0,
    status TEXT GENERATED ALWAYS AS (record ->> 'status') VIRTUAL,
    name TEXT GENERATED ALWAYS AS (record ->> 'name') VIRTUAL,
    sweep_id TEXT GENERATED ALWAYS AS (record ->> 'sweep_id') VIRTUAL,
    queue_group TEXT GENERATED ALWAYS AS (coalesce(record ->> 'sweep_id', '') || '/' || (record ->> 'gpus')) VIRTUAL,
    priority INTEGER GENERATED ALWAYS AS (record ->> 'priority') VIRTUAL,
    queued_at TEXT GENERATED ALWAYS AS (record ->> 'queued_at') VIRTUAL,
    ended_at TEXT GENERATED ALWAYS AS (record ->> 'ended_at') VIRTUAL,
    archived INTEGER GENERATED ALWAYS AS (record ->> 'archived') VIRTUAL
);
CREATE INDEX runs_by_status ON runs (status, seq);
CREATE INDEX runs_by_sweep ON runs (sweep_id, seq) WHERE sweep_id IS NOT NULL;
CREATE INDEX runs_queued ON runs (queue_group, priority DESC, queued_at, seq) WHERE status = 'queued' AND blocked_by = 0;

CREATE TABLE run_after (
    parent TEXT NOT NULL, -- first, as in the key: else quick_check of SQLite 3.40 calls a sound table damaged
    child TEXT NOT NULL,
    PRIMARY KEY (parent, child)
) WITHOUT ROWID;

CREATE TABLE sweeps (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    record TEXT NOT NULL,
    limited INTEGER GENERATED ALWAYS AS (
        record ->> 'parallel' IS NOT NULL OR record ->> 'status' IN ('paused', 'stopped')
    ) VIRTUAL
);
CREATE INDEX sweeps_limited ON sweeps (limited) WHERE limited;

CREATE TABLE alerts (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    record TEXT NOT NULL,
    run_id TEXT GENERATED ALWAYS AS (record ->> 'run_id') VIRTUAL,
    rule TEXT GENERATED ALWAYS AS (record ->> 'rule') VIRTUAL,
    status TEXT GENERATED ALWAYS AS (record ->> 'status') VIRTUAL
);
CREATE INDEX alerts_by_status ON alerts (status, seq);
CREATE INDEX alerts_by_run ON alerts (run_id, rule, status);

CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    type TEXT NOT NULL,
    actor TEXT NOT NULL,
    run_id TEXT,
    sweep_id TEXT,
    data TEXT NOT NULL
);
CREATE INDEX events_by_run ON events (run_id, seq) WHERE run_id IS NOT NULL;

CREATE TABLE idempotency (
    key TEXT NOT NULL,
    request TEXT NOT NULL,
    digest TEXT NOT NULL,
    answer TEXT NOT NULL,
    time TEXT NOT NULL,
    PRIMARY KEY (key, request)
) WITHOUT ROWID;
