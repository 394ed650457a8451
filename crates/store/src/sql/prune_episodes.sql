-- Beyond so many the least important of the oldest go.
DELETE FROM memories
WHERE id IN (
    SELECT id FROM (
        SELECT id, strength FROM memories
        WHERE tier = 'episodic' AND valid_to IS NULL
        ORDER BY seen_at, id
        LIMIT 4 * min(?1, max(0, (SELECT coalesce(sum(rows), 0) FROM memory_counts WHERE tier = 'episodic') - ?2))
    )
    ORDER BY strength, id
    LIMIT min(?1, max(0, (SELECT coalesce(sum(rows), 0) FROM memory_counts WHERE tier = 'episodic') - ?2))
)
