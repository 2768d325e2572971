-- A checksum of the last bytes read, to tell a grown file from a rewritten one. NULL in older rows.
ALTER TABLE metric_files ADD COLUMN mark INTEGER;
