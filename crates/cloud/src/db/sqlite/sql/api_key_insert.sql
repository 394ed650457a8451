INSERT INTO api_keys (hash, wallet, prefix, name, token, shown, made_at)
VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6)
