-- What others wrote is looked through for the values that an effect is aimed at: it is
-- found without reading everything else.
CREATE INDEX inbox_messages_outside ON inbox_messages (seq) WHERE label IN ('peer', 'web');
CREATE INDEX turn_inputs_outside ON turn_inputs (turn) WHERE label IN ('peer', 'web');
CREATE INDEX tool_calls_outside ON tool_calls (turn) WHERE result_label IN ('peer', 'web');
CREATE INDEX semantic_memory_outside ON semantic_memory (seq) WHERE label IN ('peer', 'web');

-- Files that were written after reading what others wrote: who reads them reads that.
CREATE TABLE path_labels (
    path   TEXT    PRIMARY KEY,
    label  TEXT    NOT NULL CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source TEXT    NOT NULL DEFAULT 'runtime',
    at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
