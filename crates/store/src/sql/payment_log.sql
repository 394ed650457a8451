INSERT INTO payment_steps (id, payment, step, detail, label, source, at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
