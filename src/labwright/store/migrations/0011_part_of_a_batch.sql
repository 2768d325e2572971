-- Very many metrics are stored in parts: of the bytes from position to part_end, the first part_keys keys.
ALTER TABLE metric_files ADD COLUMN part_end INTEGER NOT NULL DEFAULT 0;
ALTER TABLE metric_files ADD COLUMN part_keys INTEGER NOT NULL DEFAULT 0;
