SELECT category, sum(amount) AS amount
FROM ledger
WHERE turn = ?1
GROUP BY category
ORDER BY category
