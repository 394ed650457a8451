INSERT INTO ceilings (wallet, cents, serial)
SELECT wallet, ?2, ?3 FROM api_keys WHERE hash = ?1
ON CONFLICT (wallet) DO UPDATE SET cents = excluded.cents, serial = excluded.serial
