-- Suggestions are few among very many pieces. By kind, so that they come in the order of their ids.
CREATE INDEX pieces_that_suggest ON pieces (kind) WHERE kind = 'suggestion';
