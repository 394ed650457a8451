SELECT t.chain_id, t.payer, t.callee, t.data_hash, t.account_nonce,
       s.hash, s.raw, s.max_fee, s.priority_fee
FROM transactions t JOIN signed_transactions s USING (intent)
WHERE t.intent = ?1
ORDER BY s.max_fee DESC
LIMIT 1
