-- Credits of wallets without an API key, oldest first.
WITH waiting AS (
    SELECT
        accounts.wallet,
        (SELECT balance_after FROM entries
         WHERE account = accounts.id ORDER BY posting DESC LIMIT 1) AS amount,
        (SELECT postings.at FROM entries JOIN postings ON postings.seq = entries.posting
         WHERE entries.account = accounts.id ORDER BY entries.posting LIMIT 1) AS since
    FROM accounts
    WHERE accounts.kind = 'wallet'
      AND NOT EXISTS (SELECT 1 FROM api_keys WHERE api_keys.wallet = accounts.wallet)
)
SELECT wallet, amount, since FROM waiting WHERE amount > 0 ORDER BY since, wallet LIMIT ?1
