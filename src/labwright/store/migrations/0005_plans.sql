CREATE TABLE plans (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    record TEXT NOT NULL,
    status TEXT GENERATED ALWAYS AS (record ->> 'status') VIRTUAL,
    session_id TEXT GENERATED ALWAYS AS (record ->> 'session_id') VIRTUAL
);
CREATE INDEX plans_by_status ON plans (status, seq);
CREATE INDEX plans_by_session ON plans (session_id, seq) WHERE session_id IS NOT NULL;

-- Texts are stored separately: lists of plans do not need them.
CREATE TABLE plan_versions (
    id INTEGER PRIMARY KEY,
    plan_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    record TEXT NOT NULL,
    UNIQUE (plan_id, version)
);
