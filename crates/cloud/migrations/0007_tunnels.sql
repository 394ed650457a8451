-- A sandbox that is its owner's own, elsewhere: a place with ports, as a machine is, so that
-- ports, payments and sales are of one kind of place. Nothing of it is here to be started,
-- charged or removed, so it stands where a machine stands of which nothing is left.

ALTER TABLE machines ADD COLUMN is_tunnel INTEGER NOT NULL DEFAULT 0
    CHECK (is_tunnel = 0 OR (is_tunnel = 1 AND state = 'deleted'));
CREATE UNIQUE INDEX tunnels ON machines (owner) WHERE is_tunnel = 1;
