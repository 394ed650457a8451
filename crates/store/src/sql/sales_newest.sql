SELECT machine, port, sales, amount, last_at FROM port_sales
ORDER BY last_at DESC, machine, port LIMIT ?1
