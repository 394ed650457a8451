-- ?1 the oldest time that is kept, ?2 newest rows that are kept at any age,
-- ?3 rows that are kept at most, ?4 rows that are deleted at most.
DELETE FROM egress
WHERE seq IN (
    SELECT seq
    FROM egress AS old
    WHERE TRUE
      AND seq NOT IN (SELECT seq FROM egress ORDER BY seq DESC LIMIT ?2)
      AND (at < ?1 OR seq <= (SELECT seq FROM egress ORDER BY seq DESC LIMIT 1 OFFSET ?3))
    ORDER BY seq
    LIMIT ?4
)
