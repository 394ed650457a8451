INSERT INTO state_changes (from_state, to_state, reason, at)
VALUES (?1, ?2, ?3, ?4)
