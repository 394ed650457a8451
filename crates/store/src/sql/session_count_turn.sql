UPDATE sessions
SET turns = turns + 1
WHERE id = (SELECT session FROM turns WHERE id = ?1)
