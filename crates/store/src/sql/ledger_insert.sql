INSERT INTO ledger (key, category, amount, turn, goal, source, at)
VALUES (?1, ?2, ?3, (SELECT seq FROM turns WHERE id = ?4), ?5, ?6, ?7)
ON CONFLICT DO NOTHING
