-- The newest entry for each row of a table: SQLite takes the other columns from the row with the maximum.
SELECT row, max(link) AS link, sha256 FROM audit_changes WHERE source = ?1 GROUP BY row
