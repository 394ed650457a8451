-- The highest number that was signed for the account, up to the highest that one can have.
SELECT MAX(account_nonce) FROM transactions
WHERE chain_id = ?1 AND payer = ?2 AND account_nonce <= ?3
