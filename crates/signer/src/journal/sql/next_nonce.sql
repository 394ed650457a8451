SELECT COALESCE(MAX(account_nonce) + 1, 0) FROM transactions WHERE chain_id = ?1 AND payer = ?2
