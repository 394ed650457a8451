SELECT EXISTS (SELECT 1 FROM api_keys WHERE wallet = ?1)
    OR EXISTS (SELECT 1 FROM registrations WHERE wallet = ?1)
    OR EXISTS (SELECT 1 FROM accounts WHERE kind = 'wallet' AND wallet = ?1)
