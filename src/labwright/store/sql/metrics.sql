-- name: file
SELECT position, source, attempt, mark, part_end, part_keys FROM metric_files WHERE run_id = :run_id AND name = :name;

-- name: files_of_run
SELECT name, position FROM metric_files WHERE run_id = :run_id;

-- name: set_file
INSERT INTO metric_files (run_id, name, position, source, attempt, mark, part_end, part_keys)
VALUES (:run_id, :name, :position, :source, :attempt, :mark, :part_end, :part_keys)
ON CONFLICT (run_id, name) DO UPDATE SET position = excluded.position, mark = excluded.mark,
    part_end = excluded.part_end, part_keys = excluded.part_keys;

-- name: find_series
SELECT id, ascending, count, finite, total, low, high, last, last_step, last_time FROM series
WHERE run_id = :run_id AND key = :key AND source = :source AND attempt = :attempt;

-- name: next_series
SELECT coalesce(max(id), 0) + 1 FROM series;

-- name: insert_series
INSERT INTO series (ascending, count, finite, total, low, high, last, last_step, last_time, id, run_id, key, source, attempt)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: update_series
UPDATE series SET ascending = ?, count = ?, finite = ?, total = ?, low = ?, high = ?, last = ?, last_step = ?, last_time = ?
WHERE id = ?;

-- name: series_of_run
SELECT id, key, source, attempt, ascending, count, finite, total, low, high, last, last_step, last_time FROM series
WHERE run_id = :run_id ORDER BY key, attempt DESC, source;

-- name: unordered_series
SELECT id, key, source, attempt, ascending, count, finite, total, low, high, last, last_step, last_time FROM series
WHERE run_id = :run_id AND NOT ascending;

-- name: series_of_source
SELECT id, key, source, attempt, ascending, count, finite, total, low, high, last, last_step, last_time FROM series
WHERE run_id = :run_id AND source = :source AND attempt = :attempt;

-- name: last_of_finished
SELECT run_id, source, attempt, last FROM series JOIN runs ON runs.id = run_id
WHERE key = :key AND status = 'finished' AND NOT archived AND last IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM json_each(record, '$.tags') WHERE value = :rehearsal);

-- name: own_keys
SELECT DISTINCT key FROM series WHERE source != 'system' ORDER BY key LIMIT :limit;

-- name: count_own_series
SELECT count(*) FROM series WHERE run_id = :run_id AND source != 'system';

-- name: short_tails
SELECT series_id, chunks.id, count, steps, times, levels, points FROM json_each(:series_ids) AS wanted
JOIN chunks ON chunks.id = (SELECT max(id) FROM chunks WHERE series_id = wanted.value)
WHERE count < :small;

-- name: last_chunks
SELECT id, count, steps, times, levels, points FROM chunks WHERE series_id = :series_id ORDER BY id DESC LIMIT :limit;

-- name: last_counts
SELECT id, count FROM chunks WHERE series_id = :series_id ORDER BY id DESC LIMIT :limit;

-- name: chunks
SELECT count, steps, times, levels, points FROM chunks WHERE series_id = :series_id ORDER BY id;

-- name: levels
SELECT count, steps, times, levels FROM chunks WHERE series_id = :series_id ORDER BY id;

-- name: first_chunks
SELECT 0, count, steps, times, levels, points FROM chunks WHERE series_id = :series_id ORDER BY id LIMIT :limit;

-- name: chunks_from
WITH starts AS (
    SELECT id, count AS points, sum(count) OVER (ORDER BY id) - count AS start FROM chunks WHERE series_id = :series_id
)
SELECT start, chunks.count, steps, times, levels, chunks.points FROM starts JOIN chunks USING (id)
WHERE start + starts.points > :offset ORDER BY id LIMIT :limit;

-- name: insert_chunk
INSERT INTO chunks (series_id, count, steps, times, levels, points) VALUES (?, ?, ?, ?, ?, ?);

-- name: replace_chunk
UPDATE chunks SET count = ?, steps = ?, times = ?, levels = ?, points = ? WHERE id = ?;

-- name: delete_chunks_after
DELETE FROM chunks WHERE series_id = :series_id AND id > :id;

-- name: newest_series
SELECT id, key, source, attempt, ascending, count, finite, total, low, high, last, last_step, last_time FROM series
WHERE run_id = :run_id ORDER BY source = 'system', last_time DESC, key LIMIT :limit;

-- name: count_keys
SELECT count(DISTINCT key) FROM series WHERE run_id = :run_id;

-- name: set_summary
UPDATE runs SET record = json_set(record, '$.summary', json(:summary), '$.summary_left_out', :left_out)
WHERE id = :run_id;

-- name: set_refused
UPDATE runs SET record = json_set(record, '$.refused', json(:refused)) WHERE id = :run_id;

-- name: insert_artifact
INSERT INTO artifacts (run_id, key, step, kind, path, caption, time)
VALUES (:run_id, :key, :step, :kind, :path, :caption, :time);

-- name: artifacts
SELECT key, step, kind, path, caption, time FROM artifacts WHERE run_id = :run_id ORDER BY id LIMIT 10000;

-- name: delete_chunks_of_run
DELETE FROM chunks WHERE series_id IN (SELECT id FROM series WHERE run_id = :run_id);

-- name: delete_series_of_run
DELETE FROM series WHERE run_id = :run_id;

-- name: delete_files_of_run
DELETE FROM metric_files WHERE run_id = :run_id;

-- name: delete_artifacts_of_run
DELETE FROM artifacts WHERE run_id = :run_id;
