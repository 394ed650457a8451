INSERT INTO port_sales (machine, port, sales, amount, last_at)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (machine, port) DO UPDATE SET
    sales = sales + excluded.sales,
    amount = amount + excluded.amount,
    last_at = max(last_at, excluded.last_at)
