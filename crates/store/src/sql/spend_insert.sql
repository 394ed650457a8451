INSERT INTO spends (id, origin, usd, chain, asset, payer, payee, amount, state, label, source, at, changed_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'proposed', 'web', ?2, ?9, ?9)
