INSERT INTO transactions (
    intent, chain_id, payer, callee, data_hash, account_nonce, fee, counted_at
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (intent) DO UPDATE SET fee = MAX(fee, excluded.fee), counted_at = excluded.counted_at
