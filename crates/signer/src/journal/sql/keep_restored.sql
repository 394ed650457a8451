INSERT OR REPLACE INTO restored (id, window, per_hour, per_day, per_payee) VALUES (1, ?1, ?2, ?3, ?4)
