SELECT
    (SELECT COALESCE(SUM(amount), 0) FROM payments WHERE counted_at > ?1),
    (SELECT COALESCE(SUM(amount), 0) FROM payments WHERE counted_at > ?2),
    (SELECT COALESCE(MAX(total), 0) FROM (
        SELECT SUM(amount) AS total FROM payments
        WHERE counted_at > ?2 AND (?3 IS NULL OR payee = ?3)
        GROUP BY payee
    )),
    (SELECT COALESCE(SUM(amount), 0) FROM payments),
    (SELECT COUNT(*) FROM payments)
