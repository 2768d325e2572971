-- name: insert_event
INSERT INTO events (time, type, actor, run_id, sweep_id, data) VALUES (:time, :type, :actor, :run_id, :sweep_id, :data);

-- name: insert_numbered_event
INSERT INTO events (seq, time, type, actor, run_id, sweep_id, data)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: last_event_number
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0);

-- name: events_after
SELECT seq, time, type, actor, run_id, sweep_id, data FROM events
WHERE seq > :after AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types))) ORDER BY seq LIMIT :limit;

-- name: events_of_run
SELECT seq, time, type, actor, run_id, sweep_id, data FROM events
WHERE run_id = :run_id AND seq > :after AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)))
ORDER BY seq LIMIT :limit;

-- name: last_event
SELECT coalesce(max(seq), 0) FROM events;

-- name: has_event_after
SELECT EXISTS (SELECT 1 FROM events WHERE seq > :after AND type <> :but);

-- name: get_meta
SELECT value FROM meta WHERE key = :key;

-- name: set_meta
INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: delete_meta
DELETE FROM meta WHERE key = :key;

-- name: insert_alert
INSERT INTO alerts (id, record) VALUES (:id, :record);

-- name: update_alert
UPDATE alerts SET record = :record WHERE id = :id;

-- name: get_alert
SELECT record FROM alerts WHERE id = :id;

-- name: open_alert
SELECT record FROM alerts WHERE run_id = :run_id AND rule = :rule AND status = 'pending' LIMIT 1;

-- name: open_alerts_of_sweep
SELECT record FROM alerts WHERE sweep_id = :sweep_id AND status = 'pending' ORDER BY seq;

-- name: pending_alerts_of_rule
SELECT record FROM alerts WHERE rule = :rule AND status = 'pending' ORDER BY seq;

-- name: pending_alerts_of_run
SELECT record FROM alerts WHERE run_id = :run_id AND status = 'pending' ORDER BY seq;

-- name: count_pending_alerts
SELECT count(*) FROM alerts WHERE status = 'pending';

-- name: delete_alerts_of_run
DELETE FROM alerts WHERE run_id = :run_id;

-- name: list_alerts
SELECT seq, record FROM alerts
WHERE seq < :before AND (:status IS NULL OR status = :status) AND (:run_id IS NULL OR run_id = :run_id)
AND (:sweep_id IS NULL OR sweep_id = :sweep_id)
ORDER BY seq DESC LIMIT :limit;

-- name: remembered_answer
SELECT digest, answer FROM idempotency WHERE key = :key AND request = :request;

-- name: remember_answer
INSERT INTO idempotency (key, request, digest, answer, time) VALUES (:key, :request, :digest, :answer, :time);

-- name: forget_answers
DELETE FROM idempotency WHERE time < :time;

-- name: views
SELECT name, query FROM views ORDER BY name;

-- name: save_view
INSERT INTO views (name, query) VALUES (:name, :query) ON CONFLICT (name) DO UPDATE SET query = excluded.query;

-- name: delete_view
DELETE FROM views WHERE name = :name;
