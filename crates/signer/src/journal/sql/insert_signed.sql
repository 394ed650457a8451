INSERT INTO signed_transactions (intent, hash, raw, max_fee, priority_fee)
VALUES (?1, ?2, ?3, ?4, ?5)
