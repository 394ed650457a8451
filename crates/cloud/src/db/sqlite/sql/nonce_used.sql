INSERT INTO used_nonces (nonce, expires_at, proof, used_at) VALUES (?1, ?2, ?3, ?4)
