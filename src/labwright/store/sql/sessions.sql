-- name: insert
INSERT INTO sessions (id, record) VALUES (:id, :record);

-- name: update
UPDATE sessions SET record = :record WHERE id = :id;

-- name: get
SELECT record FROM sessions WHERE id = :id;

-- name: delete
DELETE FROM sessions WHERE id = :id;

-- name: delete_pieces
DELETE FROM pieces WHERE session_id = :session_id;

-- name: page
SELECT seq, record FROM sessions WHERE seq < :before ORDER BY seq DESC LIMIT :limit;

-- name: at_work
SELECT record FROM sessions WHERE status = 'working' ORDER BY seq;

-- name: waiting
SELECT record FROM sessions WHERE waiting ORDER BY seq;

-- name: insert_piece
INSERT INTO pieces (session_id, seq, turn, kind, time, data) VALUES (:session_id, :seq, :turn, :kind, :time, :data);

-- name: pieces_after
SELECT session_id, seq, turn, kind, time, data FROM pieces
WHERE session_id = :session_id AND seq > :after ORDER BY seq LIMIT :limit;

-- name: pieces_without_parts
SELECT session_id, seq, turn, kind, time, data FROM pieces
WHERE session_id = :session_id AND kind NOT IN ('text', 'thinking') ORDER BY seq;

-- name: suggestions
SELECT session_id, data FROM pieces
WHERE kind = 'suggestion' AND (:session_id IS NULL OR session_id = :session_id) ORDER BY id;

-- name: insert_approval
INSERT INTO approvals (id, record) VALUES (:id, :record);

-- name: update_approval
UPDATE approvals SET record = :record WHERE id = :id;

-- name: get_approval
SELECT record FROM approvals WHERE id = :id;

-- name: approvals_page
SELECT seq, record FROM approvals
WHERE seq < :before AND (:status IS NULL OR status = :status) AND (:session_id IS NULL OR session_id = :session_id)
ORDER BY seq DESC LIMIT :limit;

-- name: insert_memory
INSERT INTO memories (id, record) VALUES (:id, :record);

-- name: update_memory
UPDATE memories SET record = :record WHERE id = :id;

-- name: get_memory
SELECT record FROM memories WHERE id = :id;

-- name: delete_memory
DELETE FROM memories WHERE id = :id;

-- name: memories_page
SELECT seq, record FROM memories
WHERE seq < :before AND (:accepted IS NULL OR accepted = :accepted)
AND (:q IS NULL OR instr(lower(record ->> 'text'), lower(:q)))
ORDER BY seq DESC LIMIT :limit;

-- name: memories_for
SELECT record FROM memories WHERE accepted OR session_id = :session_id ORDER BY seq DESC LIMIT :limit;
