"""The database file: where it is, copies of it, and how it is rebuilt."""
