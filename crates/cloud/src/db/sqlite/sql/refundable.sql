-- Purchases and charges: whose, how much, and whether it was given back before.
SELECT
    postings.key, postings.kind, accounts.wallet, payments.payer,
    (SELECT sum(abs(amount)) FROM entries JOIN accounts AS house ON house.id = entries.account
     WHERE entries.posting = postings.seq AND house.kind IN ('external', 'revenue')) AS amount,
    EXISTS (SELECT 1 FROM postings AS back
            WHERE back.account = postings.account
              AND back.key = 'refund:' || postings.key) AS again
FROM postings
JOIN accounts ON accounts.id = postings.account
LEFT JOIN payments ON postings.key = 'payment:' || payments.id
WHERE postings.kind IN ('purchase', 'charge', 'machine')
