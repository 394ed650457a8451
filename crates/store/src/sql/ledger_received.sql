-- Credits: what was sold was paid in USDC.
SELECT coalesce(sum(amount), 0) AS sum
FROM ledger
WHERE category IN ('revenue', 'funding') AND key NOT LIKE 'revenue:sale:%'
