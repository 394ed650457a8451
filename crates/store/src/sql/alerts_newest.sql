-- What holds goes first. ?1 how many at most.
SELECT * FROM alerts ORDER BY state, seq DESC LIMIT ?1
