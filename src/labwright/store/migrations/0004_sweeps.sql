-- One index covers everything that a sweep's page shows of its runs, so thousands of records need not be read.
ALTER TABLE runs ADD COLUMN config_hash TEXT GENERATED ALWAYS AS (record ->> 'config_hash') VIRTUAL;
ALTER TABLE runs ADD COLUMN seed INTEGER GENERATED ALWAYS AS (record ->> 'seed') VIRTUAL;
ALTER TABLE runs ADD COLUMN trial INTEGER GENERATED ALWAYS AS (record ->> 'trial') VIRTUAL;
ALTER TABLE runs ADD COLUMN params TEXT GENERATED ALWAYS AS (record -> 'params') VIRTUAL;
ALTER TABLE runs ADD COLUMN started_at TEXT GENERATED ALWAYS AS (record ->> 'started_at') VIRTUAL;
CREATE INDEX runs_of_sweep ON runs (sweep_id, status, trial, seed, config_hash, id, started_at, ended_at, params)
WHERE sweep_id IS NOT NULL;

ALTER TABLE sweeps ADD COLUMN status TEXT GENERATED ALWAYS AS (record ->> 'status') VIRTUAL;
CREATE INDEX sweeps_by_status ON sweeps (status, seq);

-- Ended sweeps have no limits.
DROP INDEX sweeps_limited;
CREATE INDEX sweeps_limiting ON sweeps (id) WHERE limited AND record ->> 'status' NOT IN ('completed', 'stopped');

ALTER TABLE alerts ADD COLUMN sweep_id TEXT GENERATED ALWAYS AS (record ->> 'sweep_id') VIRTUAL;
CREATE INDEX alerts_by_sweep ON alerts (sweep_id, status) WHERE sweep_id IS NOT NULL;
