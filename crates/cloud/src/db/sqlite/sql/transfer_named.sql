SELECT id, recipient, cents, balance_after, request FROM transfers
WHERE sender = ?1 AND name = ?2
