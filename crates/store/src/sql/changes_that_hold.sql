-- What still holds of the entries up to the link ?1: the newest one of a row that is there, and each
-- row that was a stray (?3). Where the last fold stopped (?2) is said anew by this one.
SELECT source, row, sha256
FROM audit_changes AS old
WHERE link <= ?1 AND source <> ?2
    AND (source = ?3 OR (sha256 IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM audit_changes WHERE source = old.source AND row = old.row AND link > old.link
    )))
