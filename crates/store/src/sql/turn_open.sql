INSERT INTO turns (id, session, status, opened_at)
VALUES (?1, ?2, 'open', ?3)
