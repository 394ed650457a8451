-- The tunnel ?1 with the label ?2 of the owner ?3, who has one at most. Its size and price
-- are never read.
INSERT INTO machines
    (id, short_id, owner, name, tier, monthly, state, since, created_at, request, is_tunnel)
VALUES (?1, ?2, ?3, 'tunnel', 'nano', 1, 'deleted', ?4, ?4, zeroblob(32), 1)
ON CONFLICT DO NOTHING
