-- Very many metrics are stored some keys at a time: of what lies between position and part_end, the first part_keys.
ALTER TABLE metric_files ADD COLUMN part_end INTEGER NOT NULL DEFAULT 0;
ALTER TABLE metric_files ADD COLUMN part_keys INTEGER NOT NULL DEFAULT 0;
