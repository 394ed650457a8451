-- The machines of the owner ?1, those of all that run or are to, and all.
SELECT count(*) FILTER (WHERE owner = ?1) AS own,
       count(*) FILTER (WHERE state IN ('requested', 'booting', 'running')) AS runs,
       count(*) AS whole
FROM machines
WHERE state <> 'deleted'
