-- Suggestions are few among very many pieces.
CREATE INDEX pieces_that_suggest ON pieces (session_id) WHERE kind = 'suggestion';
