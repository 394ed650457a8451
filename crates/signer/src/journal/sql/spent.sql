SELECT
    (SELECT COALESCE(SUM(amount), 0) FROM payments WHERE counted_at > ?1),
    (SELECT COUNT(*) FROM payments)
