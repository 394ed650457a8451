SELECT category, sum(amount) AS amount
FROM ledger
WHERE turn = (SELECT seq FROM turns WHERE id = ?1)
GROUP BY category
ORDER BY category
