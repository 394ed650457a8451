UPDATE turns
SET status = 'judged', thought = ?2, source = ?3, judged_at = ?4, voice = ?5
WHERE id = ?1
