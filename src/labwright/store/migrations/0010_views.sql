-- The table of runs as somebody wants to see it again: what stands behind the ? of its address.
CREATE TABLE views (
    name TEXT PRIMARY KEY,
    query TEXT NOT NULL
);
