SELECT
    machine, port, last_at,
    sales - told_sales AS sales,
    amount - told_amount AS amount
FROM port_sales
WHERE told_sales < sales
ORDER BY last_at DESC, machine, port LIMIT ?1
