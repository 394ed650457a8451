INSERT INTO digests (upto, body, label, at)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (upto) DO UPDATE SET body = excluded.body, label = excluded.label, at = excluded.at
