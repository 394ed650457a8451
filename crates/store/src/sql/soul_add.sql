INSERT INTO soul_history (version, body, content_hash, change_source, change_reason, approved_by, created_at, hash)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
