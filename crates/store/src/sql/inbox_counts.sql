SELECT state, count(*) AS count
FROM inbox_messages
GROUP BY state
