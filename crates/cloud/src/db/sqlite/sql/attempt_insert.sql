INSERT INTO gas_transactions (intent, attempt, max_fee, priority_fee, at)
SELECT ?1, coalesce(max(attempt), 0) + 1, ?2, ?3, ?4 FROM gas_transactions WHERE intent = ?1
