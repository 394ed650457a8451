-- The first version stays: it says what the automaton was made for.
UPDATE soul_history SET body = NULL WHERE version BETWEEN 2 AND ?1 AND body IS NOT NULL
