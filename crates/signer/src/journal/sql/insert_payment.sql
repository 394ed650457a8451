INSERT INTO payments (
    intent, chain_id, asset, payer, payee, amount, deadline_s,
    valid_after, valid_before, nonce, signature, counted_at
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
