SELECT
    prefix, coalesce(serial, 0) AS serial, coalesce(cents, ?3) AS ceiling,
    (SELECT coalesce(sum(cents), 0) FROM transfers
     WHERE sender = api_keys.wallet AND at > ?2) AS transferred,
    (SELECT creator_address FROM registrations
     WHERE registrations.wallet = api_keys.wallet) AS creator_address
FROM api_keys LEFT JOIN ceilings ON ceilings.wallet = api_keys.wallet
WHERE hash = ?1
