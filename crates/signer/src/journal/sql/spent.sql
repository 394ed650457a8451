SELECT
    (SELECT COALESCE(SUM(amount), 0) FROM payments WHERE counted_at > ?1),
    (SELECT COALESCE(SUM(amount), 0) FROM payments),
    (SELECT COUNT(*) FROM payments)
