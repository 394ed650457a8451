-- A vector for each part of a memory's text, since what is asked for is often a sentence of many.
-- All are made anew.
DROP TABLE memory_vectors;
CREATE TABLE memory_vectors (
    memory  INTEGER NOT NULL,
    part    INTEGER NOT NULL CHECK (part >= 0),
    outside INTEGER NOT NULL CHECK (outside IN (0, 1)),
    vector  BLOB    NOT NULL,
    PRIMARY KEY (memory, part)
) STRICT, WITHOUT ROWID;
DELETE FROM embedding_progress;
