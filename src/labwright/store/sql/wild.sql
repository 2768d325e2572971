-- name: insert
INSERT INTO wild (id, record) VALUES (:id, :record);

-- name: upsert
INSERT INTO wild (id, record) VALUES (:id, :record) ON CONFLICT (id) DO UPDATE SET record = excluded.record;

-- name: update
UPDATE wild SET record = :record WHERE id = :id;

-- name: get
SELECT record FROM wild WHERE id = :id;

-- name: page
SELECT seq, record FROM wild WHERE seq < :before ORDER BY seq DESC LIMIT :limit;

-- name: unended
SELECT record FROM wild WHERE status IN ('running', 'waiting', 'paused') ORDER BY seq;

-- name: newest_of_session
SELECT record FROM wild WHERE session_id = :session_id ORDER BY seq DESC LIMIT 1;
