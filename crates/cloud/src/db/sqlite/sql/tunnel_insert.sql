-- The tunnel ?1 with the label ?2 of the owner ?3, who has one at most, if there are fewer
-- than ?5. Its size and price are never read.
INSERT INTO machines
    (id, short_id, owner, name, tier, monthly, state, since, created_at, request, is_tunnel)
SELECT ?1, ?2, ?3, 'tunnel', 'nano', 1, 'deleted', ?4, ?4, zeroblob(32), 1
WHERE (SELECT count(*) FROM machines WHERE is_tunnel = 1) < ?5
ON CONFLICT DO NOTHING
