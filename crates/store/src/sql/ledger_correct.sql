-- ?1 the key of the booking, ?2 the key of the correction, ?3 its amount: all that was
-- booked, where there is none.
INSERT INTO ledger (key, category, amount, turn, goal, corrects, source, at)
SELECT ?2, category, coalesce(?3, -amount), turn, goal, seq, source, at
FROM ledger
WHERE key = ?1
ON CONFLICT (key) DO NOTHING
