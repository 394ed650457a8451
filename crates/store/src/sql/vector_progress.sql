-- How far there are vectors, and what they have in common.
UPDATE embedding_progress SET upto = max(upto, ?1), added = ?2, direction = ?3
