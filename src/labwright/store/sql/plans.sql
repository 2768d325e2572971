-- name: insert
INSERT INTO plans (id, record) VALUES (:id, :record);

-- name: upsert
INSERT INTO plans (id, record) VALUES (:id, :record) ON CONFLICT (id) DO UPDATE SET record = excluded.record;

-- name: update
UPDATE plans SET record = :record WHERE id = :id;

-- name: find_by_prefix
SELECT id FROM plans WHERE id >= :prefix AND id < :prefix || 'zzzzzzzzzzzz' ORDER BY id LIMIT 6;

-- name: find_by_name
SELECT id FROM plans WHERE record ->> 'title' = :name ORDER BY seq DESC LIMIT 1;

-- name: newest
SELECT id FROM plans ORDER BY seq DESC LIMIT 1;

-- name: get
SELECT record FROM plans WHERE id = :id;

-- name: all
SELECT record FROM plans ORDER BY seq;

-- name: compiled_for
SELECT record FROM plans WHERE record ->> 'compiling_by' = :by ORDER BY seq;

-- name: delete
DELETE FROM plans WHERE id = :id;

-- name: page
SELECT seq, record FROM plans
WHERE seq < :before AND status IN (SELECT value FROM json_each(:statuses))
AND (:session_id IS NULL OR session_id = :session_id)
ORDER BY seq DESC LIMIT :limit;

-- name: save_version
INSERT INTO plan_versions (plan_id, version, record) VALUES (:plan_id, :version, :record)
ON CONFLICT (plan_id, version) DO UPDATE SET record = excluded.record;

-- name: get_version
SELECT record FROM plan_versions WHERE plan_id = :plan_id AND version = :version;

-- name: versions
SELECT version, record FROM plan_versions WHERE plan_id = :plan_id AND version < :before ORDER BY version DESC LIMIT :limit;

-- name: delete_versions
DELETE FROM plan_versions WHERE plan_id = :plan_id;
