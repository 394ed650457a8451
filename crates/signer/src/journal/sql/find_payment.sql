SELECT chain_id, asset, payer, payee, amount, deadline_s,
       valid_after, valid_before, nonce, signature
FROM payments
WHERE intent = ?1
