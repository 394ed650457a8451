UPDATE memories SET valid_to = ?1 WHERE expires_at <= ?1 AND valid_to IS NULL
