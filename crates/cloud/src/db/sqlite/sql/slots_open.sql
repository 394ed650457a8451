SELECT gas_slots.intent, payment, gas, nonce, max_fee, priority_fee, raw, at
FROM gas_slots JOIN gas_transactions USING (intent)
WHERE state = 'open'
  AND attempt = (SELECT max(attempt) FROM gas_transactions AS all_of
                 WHERE all_of.intent = gas_slots.intent)
ORDER BY nonce IS NULL, nonce, opened_at
LIMIT 100
