-- GPU time of earlier attempts of runs that Slurm requeued, for a sweep's budget.
ALTER TABLE runs ADD COLUMN earlier_seconds REAL GENERATED ALWAYS AS (record ->> 'earlier_seconds') VIRTUAL;
CREATE INDEX runs_begun_again ON runs (sweep_id, earlier_seconds) WHERE earlier_seconds > 0;
