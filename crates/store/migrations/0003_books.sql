-- What all answers of models used, those of turns that were lost as well: a server
-- charges for what it sent, whatever became of it here. `unheard` counts those that
-- were asked for at a price and never came.
CREATE TABLE inference_totals (
    one               INTEGER PRIMARY KEY CHECK (one = 1),
    answers           INTEGER NOT NULL CHECK (answers >= 0),
    prompt_tokens     INTEGER NOT NULL CHECK (prompt_tokens >= 0),
    cached_tokens     INTEGER NOT NULL CHECK (cached_tokens >= 0),
    completion_tokens INTEGER NOT NULL CHECK (completion_tokens >= 0),
    cost_microcents   INTEGER NOT NULL CHECK (cost_microcents >= 0),
    unheard           INTEGER NOT NULL DEFAULT 0 CHECK (unheard >= 0),
    label             TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source            TEXT    NOT NULL DEFAULT 'provider'
) STRICT;
INSERT INTO inference_totals (one, answers, prompt_tokens, cached_tokens, completion_tokens, cost_microcents)
SELECT 1, count(*), coalesce(sum(prompt_tokens), 0), coalesce(sum(cached_tokens), 0),
    coalesce(sum(completion_tokens), 0), coalesce(sum(cost_microcents), 0)
FROM inference_costs;

-- One more kind of intent: `top_up`. Rows keep their ids, which the chain links.
CREATE TABLE intents_now (
    id      TEXT    PRIMARY KEY,
    call    TEXT    NOT NULL,
    ordinal INTEGER NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('exec', 'read_path', 'write_path', 'message', 'remember', 'recall', 'sleep', 'observe', 'top_up')),
    body    TEXT    NOT NULL CHECK (json_valid(body)),
    label   TEXT    NOT NULL DEFAULT 'self' CHECK (label IN ('creator', 'self', 'tool', 'peer', 'web')),
    source  TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    UNIQUE (call, ordinal)
) STRICT, WITHOUT ROWID;
INSERT INTO intents_now SELECT * FROM intents;
DROP TABLE intents;
ALTER TABLE intents_now RENAME TO intents;
CREATE TRIGGER intents_kept BEFORE DELETE ON intents BEGIN SELECT RAISE(ABORT, 'intents are never deleted'); END;
CREATE TRIGGER intents_fixed BEFORE UPDATE ON intents BEGIN SELECT RAISE(ABORT, 'intents are never changed'); END;
