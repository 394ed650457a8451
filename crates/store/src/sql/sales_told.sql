UPDATE port_sales SET told_sales = sales, told_amount = amount, told_at = ?1
WHERE told_sales < sales
