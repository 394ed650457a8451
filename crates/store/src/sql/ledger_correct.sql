-- ?1 the key of the booking, or the answer that it is for, ?2 the amount of the correction: all
-- that was booked, where there is none.
INSERT INTO ledger (category, amount, turn, goal, corrects, source, at)
SELECT category, coalesce(?2, -amount), turn, goal, seq, source, at
FROM ledger
WHERE key = ?1 OR seq = (SELECT booking FROM unsettled_answers WHERE id = ?1)
ON CONFLICT DO NOTHING
