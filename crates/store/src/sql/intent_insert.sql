INSERT INTO intents (id, call, ordinal, kind, body, source, at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
