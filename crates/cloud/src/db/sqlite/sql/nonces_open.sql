SELECT gas_nonces.intent, payment, gas, nonce, max_fee, priority_fee, raw, at
FROM gas_nonces JOIN gas_transactions USING (intent)
WHERE state = 'open'
  AND attempt = (SELECT max(attempt) FROM gas_transactions AS all_of
                 WHERE all_of.intent = gas_nonces.intent)
ORDER BY nonce IS NULL, nonce, opened_at
LIMIT 100
