SELECT id FROM memories WHERE sha256 = ?1 AND valid_to IS NULL
