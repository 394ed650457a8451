INSERT INTO ports (machine, port, price, at)
SELECT ?1, ?2, ?3, ?4
WHERE (SELECT count(*) FROM ports WHERE machine = ?1 AND port <> ?2) < ?5
ON CONFLICT DO UPDATE SET price = excluded.price
