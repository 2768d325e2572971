-- name: position
SELECT position FROM channels WHERE name = :name AND epoch = :epoch;

-- name: set_position
INSERT INTO channels (name, epoch, position) VALUES (:name, :epoch, :position)
ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, position = excluded.position;

-- name: forget_channels
DELETE FROM channels WHERE name NOT IN (SELECT value FROM json_each(:names));

-- name: give_up_others
UPDATE deliveries SET status = 'given_up', error = :error, ended_at = :time
WHERE status = 'waiting' AND channel NOT IN (SELECT value FROM json_each(:names));

-- name: insert
INSERT INTO deliveries (channel, message, status, error, created_at, due, ended_at)
VALUES (:channel, :message, :status, :error, :created_at, :due, :ended_at);

-- name: count_waiting
SELECT count(*) FROM deliveries WHERE channel = :channel AND status = 'waiting';

-- name: due
SELECT id, channel, message, status, attempts, error, created_at, due, ended_at FROM deliveries
WHERE channel = :channel AND status = 'waiting' AND due <= :now ORDER BY due, id LIMIT :limit;

-- name: next_due
SELECT min(due) FROM deliveries WHERE channel = :channel AND status = 'waiting';

-- name: record
UPDATE deliveries SET status = :status, attempts = :attempts, error = :error, due = :due, ended_at = :ended_at
WHERE id = :id;

-- name: recent
SELECT id, channel, message, status, attempts, error, created_at, due, ended_at FROM deliveries
ORDER BY id DESC LIMIT :limit;

-- name: prune
DELETE FROM deliveries WHERE channel = :channel AND status <> 'waiting' AND id <= (
    SELECT id FROM deliveries WHERE channel = :channel ORDER BY id DESC LIMIT 1 OFFSET :kept
);
