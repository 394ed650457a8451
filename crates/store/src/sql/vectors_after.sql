-- The vectors of memories after this one, those of one together.
SELECT memory, outside, vector FROM memory_vectors WHERE memory > ?1 ORDER BY memory, part
