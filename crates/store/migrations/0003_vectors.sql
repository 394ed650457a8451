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
