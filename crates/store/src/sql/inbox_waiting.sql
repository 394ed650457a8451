SELECT count(*) AS count
FROM inbox_messages
WHERE state IN ('received', 'in_progress')
