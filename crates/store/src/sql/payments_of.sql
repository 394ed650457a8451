SELECT id, purpose, rail, origin, payee, units, worth, call, note, state, tx, reason, at, changed_at
FROM payments
WHERE turn = ?1
ORDER BY seq
