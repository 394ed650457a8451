INSERT INTO alerts (rule, state, message, since, fired_at, times) VALUES (?1, 'active', ?2, ?3, ?4, ?5)
