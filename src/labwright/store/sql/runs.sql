-- name: insert
INSERT INTO runs (id, record, blocked_by) VALUES (:id, :record, :blocked_by);

-- name: upsert
INSERT INTO runs (id, record) VALUES (:id, :record) ON CONFLICT (id) DO UPDATE SET record = excluded.record;

-- name: update
UPDATE runs SET record = :record WHERE id = :id;

-- name: get
SELECT record FROM runs WHERE id = :id;

-- name: delete
DELETE FROM runs WHERE id = :id;

-- name: find_by_prefix
SELECT id FROM runs WHERE id >= :prefix AND id < :prefix || 'zzzzzzzzzzzz' ORDER BY id LIMIT 6;

-- name: ids_by_name
SELECT name, id FROM runs WHERE name IN (SELECT value FROM json_each(:names));

-- name: find_by_name
SELECT id FROM runs WHERE name = :name ORDER BY seq DESC LIMIT 1;

-- name: newest
SELECT id FROM runs ORDER BY seq DESC LIMIT 1;

-- name: newest_folder
SELECT record ->> 'run_dir' FROM runs WHERE record ->> 'run_dir' IS NOT NULL ORDER BY seq DESC LIMIT 1;

-- name: move_folders
UPDATE runs SET record = json_set(record, '$.run_dir', :folder || '/' || id)
WHERE record ->> 'run_dir' IS NOT NULL AND record ->> 'run_dir' != :folder || '/' || id;

-- name: workdirs
SELECT DISTINCT record ->> 'workdir' FROM runs;

-- name: move_workdir
UPDATE runs SET record = json_set(record, '$.workdir', :new) WHERE record ->> 'workdir' = :old;

-- name: with_status
SELECT record FROM runs WHERE status = :status ORDER BY seq;

-- name: ids
SELECT id FROM runs;

-- name: before_launch
SELECT id FROM runs WHERE status IN ('ready', 'queued', 'launching');

-- name: first_active_launch
SELECT min(record ->> 'launched_at') FROM runs WHERE status IN ('launching', 'waiting', 'running');

-- name: lost_or_newest
SELECT id FROM runs WHERE status = 'lost'
UNION
SELECT id FROM (SELECT id FROM runs ORDER BY seq DESC LIMIT :limit);

-- name: count_by_status
SELECT status, count(*) FROM runs GROUP BY status;

-- name: count_by_status_in_sweep
SELECT status, count(*) FROM runs WHERE sweep_id = :sweep_id GROUP BY status;

-- name: count_by_status_in_sweeps
SELECT sweep_id, status, count(*) FROM runs WHERE sweep_id IS NOT NULL GROUP BY sweep_id, status;

-- name: queued_groups
WITH RECURSIVE groups (label) AS (
    SELECT * FROM (
        SELECT queue_group FROM runs INDEXED BY runs_queued
        WHERE status = 'queued' AND blocked_by = 0 ORDER BY queue_group LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT queue_group FROM runs INDEXED BY runs_queued
        WHERE status = 'queued' AND blocked_by = 0 AND queue_group > groups.label ORDER BY queue_group LIMIT 1
    )
    FROM groups WHERE label IS NOT NULL
)
SELECT label FROM groups WHERE label IS NOT NULL;

-- name: queue_of_group
SELECT id, priority, CAST(record ->> 'gpus' AS INTEGER), queued_at, coalesce(record ->> 'named_gpus', '[]') FROM runs
WHERE status = 'queued' AND blocked_by = 0 AND queue_group = :queue_group
ORDER BY priority DESC, queued_at, seq LIMIT :limit;

-- name: first_in_queue
SELECT id FROM runs
WHERE status = 'queued' AND blocked_by = 0 AND queue_group = :queue_group
ORDER BY priority DESC, queued_at, seq LIMIT :limit;

-- name: active_load
SELECT
    coalesce(sweep_id, ''), CAST(record ->> 'gpus' AS INTEGER), id, status = 'waiting', record ->> 'launcher' IS 'slurm',
    coalesce(record ->> 'named_gpus', '[]'),
    CASE WHEN status = 'running' AND record ->> 'named_gpus' != '[]'
        THEN max(0, (record ->> 'gpus') - (
            SELECT count(*) FROM json_each(record, '$.gpu_uuids')
            WHERE :cards = '[]' OR value IN (SELECT value FROM json_each(:cards))
        )) ELSE 0 END
FROM runs
WHERE status IN ('launching', 'waiting', 'running') AND record ->> 'launcher' IS NOT 'external';

-- name: twin
SELECT id FROM runs
WHERE sweep_id = :sweep_id AND config_hash = :config_hash AND record ->> 'seed' IS :seed AND record ->> 'command' = :command
LIMIT 1;

-- name: add_dependency
INSERT OR IGNORE INTO run_after (child, parent) VALUES (:child, :parent);

-- name: children
SELECT child FROM run_after WHERE parent = :parent;

-- name: child_records
SELECT runs.record FROM run_after JOIN runs ON runs.id = run_after.child WHERE run_after.parent = :parent;

-- name: forget_dependencies
DELETE FROM run_after WHERE parent = :parent;

-- name: unblock
UPDATE runs SET blocked_by = max(0, blocked_by - 1) WHERE id = :id;

-- name: unfinished
SELECT id FROM runs WHERE id IN (SELECT value FROM json_each(:ids)) AND status IS NOT 'finished' ORDER BY seq;

-- name: set_blocked
UPDATE runs SET blocked_by = :blocked_by WHERE id = :id;

-- name: events_offset
SELECT events_offset FROM runs WHERE id = :id;

-- name: set_events_offset
UPDATE runs SET events_offset = :offset WHERE id = :id;

-- name: snapshot_hashes
SELECT DISTINCT record ->> '$.snapshot.hash' FROM runs
WHERE record ->> '$.snapshot.hash' IS NOT NULL AND (ended_at IS NULL OR ended_at >= :time);

-- name: environment_hashes
SELECT DISTINCT record ->> 'env_hash' FROM runs WHERE record ->> 'env_hash' IS NOT NULL;

-- name: ended_before
SELECT record FROM runs WHERE status IN ('finished', 'failed', 'stopped', 'lost') AND ended_at < :time ORDER BY seq;
