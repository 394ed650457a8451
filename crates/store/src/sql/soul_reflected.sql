INSERT INTO soul_reflection (id, at, suggestion) VALUES (1, ?1, ?2)
ON CONFLICT (id) DO UPDATE SET at = excluded.at, suggestion = excluded.suggestion
