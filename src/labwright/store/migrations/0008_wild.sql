CREATE TABLE wild (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    record TEXT NOT NULL,
    status TEXT GENERATED ALWAYS AS (record ->> 'status') VIRTUAL,
    session_id TEXT GENERATED ALWAYS AS (record ->> 'session_id') VIRTUAL
);
CREATE INDEX wild_unended ON wild (status) WHERE status IN ('running', 'waiting', 'paused');
CREATE INDEX wild_by_session ON wild (session_id, seq) WHERE session_id IS NOT NULL;
