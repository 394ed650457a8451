-- The newest items with any of these words, of those that others say.
SELECT m.*
FROM (
    SELECT rowid AS id FROM memory_words_outside WHERE memory_words_outside MATCH ?1 ORDER BY rowid DESC LIMIT ?2
) AS w
JOIN memories AS m ON m.id = w.id
WHERE (?3 = '' OR instr(?3, m.tier) > 0) AND (?4 IS NULL OR m.kind = ?4)
ORDER BY m.id DESC
LIMIT ?5
