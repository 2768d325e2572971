-- Suggestions are few among many pieces. Indexed by kind, they come in the order of their ids.
CREATE INDEX pieces_that_suggest ON pieces (kind) WHERE kind = 'suggestion';
