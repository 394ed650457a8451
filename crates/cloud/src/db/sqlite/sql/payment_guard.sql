SELECT id FROM payments
WHERE payer = ?1 AND recipient = ?2 AND usd = ?3 AND begun_at >= ?4
  AND delivered_at IS NULL AND state <> 'failed'
ORDER BY id DESC LIMIT 1
