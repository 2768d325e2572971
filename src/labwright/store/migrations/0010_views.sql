-- Saved views of the runs table: the query string of its address.
CREATE TABLE views (
    name TEXT PRIMARY KEY,
    query TEXT NOT NULL
);
