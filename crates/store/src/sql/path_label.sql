INSERT INTO path_labels (path, label, at) VALUES (?1, ?2, ?3)
ON CONFLICT (path) DO UPDATE SET label = excluded.label, at = excluded.at
