UPDATE automaton
SET sleep_since = ?1, sleep_until = ?2, sleep_reason = ?3
