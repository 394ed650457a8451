INSERT INTO audit_chain (seq, at, sha256) VALUES (?1, ?2, ?3)
