INSERT INTO inbox_messages (id, dedup, body, label, source, received_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
