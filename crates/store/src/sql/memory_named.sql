SELECT * FROM memories WHERE name = ?1 AND kind = ?2 AND tier = ?3 AND valid_to IS NULL AND name <> '' ORDER BY id
