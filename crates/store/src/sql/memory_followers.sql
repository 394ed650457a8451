-- What the creator said right after an item. Between two messages stand the events of a few turns.
SELECT * FROM memories
WHERE id > ?1 AND id <= ?1 + 24 AND tier = 'episodic' AND kind = 'message' AND label = 'creator' AND valid_to IS NULL
ORDER BY id
LIMIT 3
