-- Of the newest calls that were done, each tool once.
SELECT DISTINCT tool FROM (SELECT tool, status FROM tool_calls ORDER BY seq DESC LIMIT 500)
WHERE status = 'done'
ORDER BY tool
LIMIT 40
