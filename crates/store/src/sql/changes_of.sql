SELECT source, row, sha256 FROM audit_changes WHERE link = ?1 ORDER BY source, row
