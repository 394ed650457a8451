INSERT INTO turn_inputs (turn, ordinal, message, body, label, source)
VALUES (?1, ?2, (SELECT seq FROM inbox_messages WHERE id = ?3), ?4, ?5, ?6)
