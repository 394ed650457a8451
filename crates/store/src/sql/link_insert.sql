INSERT INTO audit_chain (seq, kind, subject_id, body_sha256, prev_sha256, sha256, at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
