INSERT INTO turns (id, session, status, opened_at)
VALUES (?1, (SELECT seq FROM sessions WHERE id = ?2), 'open', ?3)
RETURNING seq
