DELETE FROM prompt_parts
WHERE seq NOT IN (
    SELECT head FROM turns WHERE head IS NOT NULL
    UNION ALL
    SELECT shown FROM turns WHERE shown IS NOT NULL
    UNION ALL
    SELECT worklog FROM turns WHERE worklog IS NOT NULL
)
