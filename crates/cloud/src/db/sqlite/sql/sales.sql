-- What the requests to a wallet's ports brought, newest first; ?1 the wallet.
SELECT sales.seq, payments.machine, payments.port, payments.payer, payments.value,
    payments.tx_hash, payments.closed_at AS at
FROM payments JOIN sales ON sales.payment = payments.id
WHERE payments.payee = ?1 AND payments.machine IS NOT NULL
ORDER BY sales.seq DESC
LIMIT ?2 OFFSET ?3
