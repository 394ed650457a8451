SELECT row FROM audit_changes WHERE source = ?1 ORDER BY link DESC LIMIT 1
