SELECT COALESCE(SUM(fee), 0) FROM transactions WHERE counted_at > ?1 AND intent <> ?2
