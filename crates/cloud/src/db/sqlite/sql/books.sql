WITH sums AS (
    SELECT accounts.id, accounts.kind, coalesce(sum(entries.amount), 0) AS amount
    FROM accounts LEFT JOIN entries ON entries.account = accounts.id
    GROUP BY accounts.id
), carried AS (
    SELECT account, balance_after, max(posting) FROM entries GROUP BY account
)
SELECT
    (SELECT coalesce(sum(amount), 0) FROM sums) AS sum,
    (SELECT coalesce(sum(amount), 0) FROM sums WHERE kind IN ('wallet', 'held')) AS owed,
    (SELECT amount FROM sums WHERE kind = 'revenue') AS revenue,
    (SELECT count(*) FROM (SELECT 1 FROM entries GROUP BY posting HAVING sum(amount) <> 0))
    + (SELECT count(*) FROM sums JOIN carried ON carried.account = sums.id
       WHERE carried.balance_after <> sums.amount)
    + (SELECT count(*) FROM sums WHERE kind <> 'external' AND amount < 0)
    + (SELECT count(*) FROM payments
       WHERE (state = 'settled' AND usd IS NOT NULL) <> (SELECT count(*) FROM postings
           WHERE kind = 'purchase' AND key = 'payment:' || payments.id))
    + (SELECT count(*) FROM machines LEFT JOIN (
           SELECT substr(postings.key, 9, 26) AS id, sum(entries.amount) AS amount
           FROM postings
           JOIN entries ON entries.posting = postings.seq
           JOIN accounts ON accounts.id = entries.account
           WHERE postings.kind = 'machine' AND accounts.kind = 'revenue'
           GROUP BY 1) AS charged ON charged.id = machines.id
       WHERE machines.billed <> coalesce(charged.amount, 0)) AS faults
