-- What each turn asked its model with, so that it can be shown later. A prompt is not
-- stored whole: what the record can give again is kept as its hash and its size.

-- The layers that stay the same from turn to turn: names and texts, in their order.
-- `sha256` is that of `layers`.
CREATE TABLE prompt_heads (
    seq    INTEGER PRIMARY KEY,
    sha256 BLOB    NOT NULL UNIQUE CHECK (length(sha256) = 32),
    layers TEXT    NOT NULL CHECK (json_valid(layers)),
    label  TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source TEXT    NOT NULL DEFAULT 'runtime'
) STRICT;

-- `at` is when the model was asked. `status` is the one layer of a turn that nothing
-- else in the record holds.
CREATE TABLE prompts (
    turn           TEXT    NOT NULL PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
    head           INTEGER NOT NULL REFERENCES prompt_heads (seq),
    status         TEXT    NOT NULL,
    history_from   INTEGER,
    history_sha256 BLOB    NOT NULL CHECK (length(history_sha256) = 32),
    history_chars  INTEGER NOT NULL CHECK (history_chars >= 0),
    history_tokens INTEGER NOT NULL CHECK (history_tokens >= 0),
    memory_sha256  BLOB    NOT NULL CHECK (length(memory_sha256) = 32),
    memory_chars   INTEGER NOT NULL CHECK (memory_chars >= 0),
    memory_tokens  INTEGER NOT NULL CHECK (memory_tokens >= 0),
    input_sha256   BLOB    NOT NULL CHECK (length(input_sha256) = 32),
    input_chars    INTEGER NOT NULL CHECK (input_chars >= 0),
    input_tokens   INTEGER NOT NULL CHECK (input_tokens >= 0),
    window_tokens  INTEGER NOT NULL CHECK (window_tokens >= 0),
    answer_tokens  INTEGER NOT NULL CHECK (answer_tokens >= 0),
    label          TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source         TEXT    NOT NULL DEFAULT 'runtime',
    at             INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The payments of a turn are looked for by it.
CREATE INDEX payments_turn ON payments (turn) WHERE turn IS NOT NULL;
