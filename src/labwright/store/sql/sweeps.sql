-- name: insert
INSERT INTO sweeps (id, record) VALUES (:id, :record);

-- name: upsert
INSERT INTO sweeps (id, record) VALUES (:id, :record) ON CONFLICT (id) DO UPDATE SET record = excluded.record;

-- name: find_by_prefix
SELECT id FROM sweeps WHERE id >= :prefix AND id < :prefix || 'zzzzzzzzzzzz' ORDER BY id LIMIT 6;

-- name: find_by_name
SELECT id FROM sweeps WHERE record ->> 'name' = :name ORDER BY seq DESC LIMIT 1;

-- name: newest
SELECT id FROM sweeps ORDER BY seq DESC LIMIT 1;

-- name: get
SELECT record FROM sweeps WHERE id = :id;

-- name: update
UPDATE sweeps SET record = :record WHERE id = :id;

-- name: with_command
SELECT record FROM sweeps
WHERE record ->> 'base_command' = :base_command AND record ->> 'method' != 'wild' AND record ->> 'status' != 'stopped'
ORDER BY seq DESC LIMIT 50;

-- name: list
SELECT seq, record FROM sweeps WHERE seq < :before ORDER BY seq DESC LIMIT :limit;

-- name: limits
SELECT id, CASE status WHEN 'paused' THEN 0 ELSE CAST(record ->> 'parallel' AS INTEGER) END FROM sweeps
WHERE limited AND record ->> 'status' NOT IN ('completed', 'stopped');

-- name: with_status
SELECT record FROM sweeps WHERE status = :status ORDER BY seq;

-- name: unended
SELECT id FROM sweeps WHERE status IN ('draft', 'running', 'paused');

-- name: runs
SELECT id, status, trial, seed, config_hash, ended_at, params FROM runs INDEXED BY runs_of_sweep WHERE sweep_id = :sweep_id;

-- name: ready
SELECT id FROM runs INDEXED BY runs_of_sweep
WHERE sweep_id = :sweep_id AND status = 'ready' AND trial IS NOT NULL ORDER BY trial, seed LIMIT :limit;

-- name: times
SELECT status, started_at, ended_at FROM runs INDEXED BY runs_of_sweep
WHERE sweep_id = :sweep_id AND started_at IS NOT NULL;

-- name: earlier_seconds
SELECT total(earlier_seconds) FROM runs INDEXED BY runs_begun_again
WHERE sweep_id = :sweep_id AND earlier_seconds > 0;

-- name: records_of_unended
SELECT record FROM runs WHERE sweep_id = :sweep_id AND status IN ('ready', 'queued', 'launching', 'waiting', 'running')
ORDER BY seq;

-- name: records_of_failed
SELECT record FROM runs WHERE sweep_id = :sweep_id AND status IN ('failed', 'lost') ORDER BY seq;

-- name: count_to_retry
SELECT count(*) FROM runs WHERE sweep_id = :sweep_id AND status IN ('failed', 'lost') AND id NOT IN
(SELECT record ->> 'parent_run_id' FROM runs WHERE sweep_id = :sweep_id AND record ->> 'parent_run_id' IS NOT NULL);

-- name: retried
SELECT record ->> 'parent_run_id' FROM runs WHERE sweep_id = :sweep_id AND record ->> 'parent_run_id' IS NOT NULL;

-- name: parents
SELECT DISTINCT parent FROM run_after;

-- name: values_of_metric
SELECT runs.id, series.last, series.low, series.high, series.source, series.attempt FROM runs
INDEXED BY runs_of_sweep CROSS JOIN series ON series.run_id = runs.id AND series.key = :key
WHERE runs.sweep_id = :sweep_id;

-- name: metric_keys
SELECT series.key, count(DISTINCT series.run_id) FROM runs
INDEXED BY runs_of_sweep CROSS JOIN series ON series.run_id = runs.id
WHERE runs.sweep_id = :sweep_id GROUP BY series.key ORDER BY 2 DESC, 1;
