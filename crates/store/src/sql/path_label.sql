INSERT INTO path_labels (path, label, sha256, at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (path) DO UPDATE SET label = excluded.label, sha256 = excluded.sha256, at = excluded.at
