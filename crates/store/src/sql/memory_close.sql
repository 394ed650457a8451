UPDATE memories SET valid_to = ?2, superseded_by = ?3 WHERE id = ?1 AND valid_to IS NULL
