-- One row per series, with statistics that need no reading of its points.
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    key TEXT NOT NULL,
    source TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    ascending INTEGER NOT NULL DEFAULT 1,
    count INTEGER NOT NULL DEFAULT 0,
    finite INTEGER NOT NULL DEFAULT 0,
    total REAL NOT NULL DEFAULT 0,
    low REAL,
    high REAL,
    last TEXT, -- as text, since SQLite turns NaN into NULL
    last_step INTEGER,
    last_time REAL,
    UNIQUE (run_id, key, source, attempt)
);

-- The large column comes last: a chart reads all others.
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY,
    series_id INTEGER NOT NULL,
    count INTEGER NOT NULL,
    steps BLOB NOT NULL,
    times BLOB NOT NULL,
    levels BLOB NOT NULL,
    points BLOB NOT NULL
);
CREATE INDEX chunks_by_series ON chunks (series_id, id);

-- How far each metric file was read; stored together with its points.
CREATE TABLE metric_files (
    run_id TEXT NOT NULL,
    name TEXT NOT NULL,
    position INTEGER NOT NULL,
    source TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    PRIMARY KEY (run_id, name)
) WITHOUT ROWID;

CREATE TABLE artifacts (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    key TEXT NOT NULL,
    step INTEGER,
    kind TEXT NOT NULL,
    path TEXT NOT NULL,
    caption TEXT NOT NULL,
    time TEXT NOT NULL
);
CREATE INDEX artifacts_by_run ON artifacts (run_id, key, step);
