SELECT goal, sum(-amount) AS lost
FROM ledger, automaton
WHERE ledger.seq > losses_from AND coalesce(corrects, ledger.seq) > losses_from AND category <> 'funding' AND goal IS NOT NULL
GROUP BY goal
ORDER BY lost DESC, goal
LIMIT 1
