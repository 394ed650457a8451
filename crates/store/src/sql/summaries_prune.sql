DELETE FROM session_summaries
WHERE upto NOT IN (SELECT upto FROM session_summaries ORDER BY upto DESC LIMIT ?1)
