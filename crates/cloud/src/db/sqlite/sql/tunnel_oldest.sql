-- The oldest tunnel of an owner that was never in the ledger and was never paid for a request,
-- where ?1 has no tunnel and there are ?2 or more. Anybody can make such tunnels, without end.
SELECT id FROM machines
WHERE is_tunnel = 1
  AND (SELECT count(*) FROM machines WHERE is_tunnel = 1) >= ?2
  AND NOT EXISTS (SELECT 1 FROM machines WHERE is_tunnel = 1 AND owner = ?1)
  AND NOT EXISTS (SELECT 1 FROM accounts WHERE kind = 'wallet' AND wallet = machines.owner)
  AND NOT EXISTS (SELECT 1 FROM payments WHERE payments.machine = machines.id)
ORDER BY created_at, id LIMIT 1
