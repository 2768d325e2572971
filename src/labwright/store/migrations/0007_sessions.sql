CREATE TABLE sessions (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    record TEXT NOT NULL,
    status TEXT GENERATED ALWAYS AS (record ->> 'status') VIRTUAL,
    updated_at TEXT GENERATED ALWAYS AS (record ->> 'updated_at') VIRTUAL,
    waiting INTEGER GENERATED ALWAYS AS (json_array_length(record, '$.waits') > 0) VIRTUAL
);
CREATE INDEX sessions_at_work ON sessions (status) WHERE status = 'working';
CREATE INDEX sessions_waiting ON sessions (waiting) WHERE waiting;

-- Append-only: a client continues from the last number it has seen.
CREATE TABLE pieces (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    kind TEXT NOT NULL,
    time TEXT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (session_id, seq)
);

CREATE TABLE approvals (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    record TEXT NOT NULL,
    status TEXT GENERATED ALWAYS AS (record ->> 'status') VIRTUAL,
    session_id TEXT GENERATED ALWAYS AS (record ->> 'session_id') VIRTUAL
);
CREATE INDEX approvals_by_status ON approvals (status, seq);
CREATE INDEX approvals_by_session ON approvals (session_id, seq);

CREATE TABLE memories (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    record TEXT NOT NULL,
    accepted INTEGER GENERATED ALWAYS AS (record ->> 'accepted') VIRTUAL,
    session_id TEXT GENERATED ALWAYS AS (record ->> 'session_id') VIRTUAL
);
