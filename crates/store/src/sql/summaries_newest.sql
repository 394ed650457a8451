SELECT upto, from_turn, label, body
FROM session_summaries
WHERE upto <= ?1 AND body <> ''
ORDER BY upto DESC
LIMIT ?2
