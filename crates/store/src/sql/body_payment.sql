SELECT id, payment, step, detail, label, source, at
FROM payment_steps
WHERE id = ?1
