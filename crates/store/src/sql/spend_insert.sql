INSERT INTO spends (id, origin, usd, chain, asset, payee, amount, state, label, source, at, changed_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'proposed', 'web', ?2, ?8, ?8)
