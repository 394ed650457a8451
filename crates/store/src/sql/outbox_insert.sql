INSERT INTO outbox_messages (id, cause, body, label, source, reply_to, at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
