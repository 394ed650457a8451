INSERT INTO audit_chain (seq, at, sha256, changes) VALUES (?1, ?2, ?3, ?4)
