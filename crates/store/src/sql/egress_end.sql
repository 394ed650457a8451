UPDATE egress
SET status = ?2, bytes_up = ?3, bytes_down = ?4, ended = ?5, ended_at = ?6
WHERE id = ?1 AND outcome = 'allow' AND ended IS NULL
