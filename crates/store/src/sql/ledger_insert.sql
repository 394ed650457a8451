INSERT INTO ledger (key, category, amount, turn, goal, source, at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (key) DO NOTHING
