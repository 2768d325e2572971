-- Runs that name their GPUs wait in separate queues, one per set of names.
DROP INDEX runs_queued;
ALTER TABLE runs DROP COLUMN queue_group;
ALTER TABLE runs ADD COLUMN queue_group TEXT GENERATED ALWAYS AS (
    coalesce(record ->> 'sweep_id', '') || '/' || (record ->> 'gpus') || iif(coalesce(record ->> 'named_gpus', '[]') = '[]', '', record ->> 'named_gpus')
) VIRTUAL;
CREATE INDEX runs_queued ON runs (queue_group, priority DESC, queued_at, seq) WHERE status = 'queued' AND blocked_by = 0;
