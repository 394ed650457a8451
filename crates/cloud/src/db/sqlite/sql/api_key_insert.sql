INSERT INTO api_keys (hash, wallet, prefix, name, token, shown, made_at, is_strangers)
VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6,
        NOT EXISTS (SELECT 1 FROM accounts WHERE kind = 'wallet' AND wallet = ?2))
