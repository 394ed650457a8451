INSERT INTO payments
    (chain, asset, payer, nonce, payee, value, valid_after, valid_before, signature, recipient,
     gift, usd, balance, machine, port, state, begun_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 'begun', ?16)
