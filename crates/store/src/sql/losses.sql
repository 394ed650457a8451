-- ?1 the time 24 hours ago. The `+` has a day be found by its time, and not a life read whole.
SELECT lost AS total, (
    SELECT coalesce(sum(-amount), 0) FROM ledger
    WHERE at > ?1 AND +seq > losses_from AND coalesce(corrects, seq) > losses_from AND category <> 'funding'
) AS day
FROM automaton
