INSERT INTO anchor (id, window, wall, chain) VALUES (1, ?1, ?2, ?3)
ON CONFLICT (id) DO UPDATE SET window = excluded.window, wall = excluded.wall, chain = excluded.chain
