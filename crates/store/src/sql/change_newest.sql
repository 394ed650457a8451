SELECT sha256 FROM audit_changes WHERE source = ?1 AND row = ?2 ORDER BY link DESC LIMIT 1
