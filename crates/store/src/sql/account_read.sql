INSERT INTO account_reads (origin, entry, sale)
VALUES (?1, ?2, ?3)
ON CONFLICT (origin) DO UPDATE SET entry = excluded.entry, sale = excluded.sale
