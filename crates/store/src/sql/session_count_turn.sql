UPDATE sessions
SET turns = turns + 1
WHERE seq = (SELECT session FROM turns WHERE id = ?1)
