-- ?1 the time 24 hours ago.
SELECT coalesce(sum(-amount) FILTER (WHERE at > ?1), 0) AS day, coalesce(sum(-amount), 0) AS total
FROM ledger, automaton
WHERE ledger.seq > losses_from AND coalesce(corrects, ledger.seq) > losses_from AND category <> 'funding'
