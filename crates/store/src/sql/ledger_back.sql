INSERT INTO ledger (key, category, amount, turn, goal, source, at)
SELECT ?2, category, -amount, turn, goal, source, ?3
FROM ledger
WHERE key = ?1
ON CONFLICT (key) DO NOTHING
