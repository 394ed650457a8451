SELECT coalesce(sum(amount), 0) AS sum
FROM ledger
WHERE category IN ('revenue', 'funding')
