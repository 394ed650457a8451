UPDATE turns
SET status = 'committed', committed_at = ?2, ingest = 'owed'
WHERE id = ?1
