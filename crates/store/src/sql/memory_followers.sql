-- What the creator said right after an item. Between two messages stand the events of a few turns.
-- By number alone: an index of the tier would be read from its beginning.
SELECT * FROM memories NOT INDEXED
WHERE id > ?1 AND id <= ?1 + 24 AND tier = 'episodic' AND kind = 'message' AND label = 'creator' AND valid_to IS NULL
ORDER BY id
LIMIT 3
