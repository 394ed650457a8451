-- A sign-in whose nonce made room for others gives the same token once more.
INSERT INTO access_tokens (hash, wallet, expires_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING
