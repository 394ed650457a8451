-- Payments for requests to ports of machines: for which port each one is, so that it is
-- good for no other one and for nothing else. What `delivered_at` says of a purchase's
-- reply, it says of the request: when it was passed on, once.

ALTER TABLE payments ADD COLUMN machine TEXT REFERENCES machines (id);
ALTER TABLE payments ADD COLUMN port INTEGER
    CHECK ((port IS NULL) = (machine IS NULL) AND (port IS NULL OR recipient IS NULL));

-- Those that are settled, in the order in which they were: what an owner earned.
CREATE TABLE sales (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    payment INTEGER NOT NULL UNIQUE REFERENCES payments (id)
) STRICT;
CREATE INDEX payments_sold ON payments (payee) WHERE machine IS NOT NULL;
