-- What changed what a wallet has, set aside or not; ?1 is its account, ?2 that of
-- what is set aside. A hold and its release only move between the two; a charge may
-- take all that was set aside, and is found there.
WITH found AS (
    SELECT entries.posting, postings.kind, postings.key, postings.at
    FROM entries JOIN postings ON postings.seq = entries.posting
    WHERE entries.account = ?1 AND postings.kind IN ('purchase', 'transfer', 'refund', 'machine')
    UNION ALL
    SELECT entries.posting, postings.kind, postings.key, postings.at
    FROM entries JOIN postings ON postings.seq = entries.posting
    WHERE entries.account = ?2 AND postings.kind = 'charge'
    ORDER BY posting DESC
    LIMIT ?3 OFFSET ?4
)
SELECT
    found.posting, found.kind, found.at, found.key,
    (SELECT sum(amount) FROM entries
     WHERE posting = found.posting AND account IN (?1, ?2)) AS amount,
    coalesce((SELECT balance_after FROM entries
              WHERE account = ?1 AND posting <= found.posting
              ORDER BY posting DESC LIMIT 1), 0)
    + coalesce((SELECT balance_after FROM entries
                WHERE account = ?2 AND posting <= found.posting
                ORDER BY posting DESC LIMIT 1), 0) AS balance_after,
    coalesce(transfers.sender, payments.payer) AS sender, transfers.recipient,
    coalesce(transfers.note, holds.model,
             iif(found.kind = 'machine', substr(found.key, 9, 26), NULL)) AS description,
    -- Given to a wallet that has not signed in.
    (transfers.recipient IS NOT NULL
     AND NOT EXISTS (SELECT 1 FROM api_keys WHERE wallet = transfers.recipient)) AS unclaimed
FROM found
LEFT JOIN transfers ON found.kind = 'transfer' AND transfers.id = substr(found.key, 10)
LEFT JOIN payments ON found.kind = 'purchase' AND payments.id = substr(found.key, 9)
LEFT JOIN holds ON found.kind = 'charge' AND holds.id = substr(found.key, 7)
ORDER BY found.posting DESC
