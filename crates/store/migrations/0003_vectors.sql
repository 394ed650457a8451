-- What the texts of memories mean to one model. A vector goes with its memory.
CREATE TABLE memory_vectors (
    memory  INTEGER PRIMARY KEY,
    outside INTEGER NOT NULL CHECK (outside IN (0, 1)),
    vector  BLOB    NOT NULL
) STRICT;
CREATE TRIGGER memory_vectors_closed AFTER UPDATE OF valid_to ON memories WHEN new.valid_to IS NOT NULL BEGIN
    DELETE FROM memory_vectors WHERE memory = old.id;
END;
CREATE TRIGGER memory_vectors_gone AFTER DELETE ON memories BEGIN
    DELETE FROM memory_vectors WHERE memory = old.id;
END;

-- Which model, and up to which memory there are vectors.
CREATE TABLE embedding_progress (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    model TEXT    NOT NULL,
    upto  INTEGER NOT NULL CHECK (upto >= 0)
) STRICT;

-- What was lost since `losses_from`, added up with each booking: to add it up anew takes longer
-- with each day of a life.
ALTER TABLE automaton ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
UPDATE automaton SET lost = (
    SELECT coalesce(sum(-amount), 0) FROM ledger
    WHERE seq > losses_from AND coalesce(corrects, seq) > losses_from AND category <> 'funding'
);
CREATE TRIGGER ledger_lost AFTER INSERT ON ledger WHEN new.category <> 'funding' BEGIN
    UPDATE automaton SET lost = lost - new.amount WHERE coalesce(new.corrects, new.seq) > losses_from;
END;

-- What nobody has answered yet is found without looking at all that was ever said.
CREATE INDEX inbox_messages_open ON inbox_messages (seq) WHERE label = 'creator' AND answered_at IS NULL;
