-- The first number from ?3 on that was not signed for the account: ?3 itself, or the end of the
-- run of numbers that begins there.
SELECT CASE
    WHEN NOT EXISTS (
        SELECT 1 FROM transactions WHERE chain_id = ?1 AND payer = ?2 AND account_nonce = ?3
    ) THEN ?3
    ELSE (
        SELECT MIN(last.account_nonce) + 1
        FROM transactions last
        WHERE last.chain_id = ?1 AND last.payer = ?2 AND last.account_nonce BETWEEN ?3 AND ?4
          AND NOT EXISTS (
              SELECT 1 FROM transactions next
              WHERE next.chain_id = ?1 AND next.payer = ?2
                AND next.account_nonce = last.account_nonce + 1
          )
    )
END
