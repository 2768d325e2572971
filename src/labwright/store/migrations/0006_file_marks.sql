-- A checksum of what was read last, to tell a file that grew from one that was written anew. None in older rows.
ALTER TABLE metric_files ADD COLUMN mark INTEGER;
