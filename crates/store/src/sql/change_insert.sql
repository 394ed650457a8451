INSERT INTO audit_changes (source, row, link, sha256) VALUES (?1, ?2, ?3, ?4)
