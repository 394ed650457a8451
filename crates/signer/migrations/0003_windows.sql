-- Three more ceilings, in millionths of a USDC. At first they permit what was
-- permitted before: an hour and one payee as much as a day, a life as much as all
-- payments together and at least 250,000 USDC.
ALTER TABLE limits ADD COLUMN per_hour INTEGER NOT NULL DEFAULT 0 CHECK (per_hour >= 0);
ALTER TABLE limits ADD COLUMN per_payee INTEGER NOT NULL DEFAULT 0 CHECK (per_payee >= 0);
ALTER TABLE limits ADD COLUMN lifetime INTEGER NOT NULL DEFAULT 0 CHECK (lifetime >= 0);

UPDATE limits SET
    per_hour = per_day,
    per_payee = per_day,
    lifetime = MAX(250000000000, CASE
        WHEN per_payment > 0 AND payments_max > 9223372036854775807 / per_payment
        THEN 9223372036854775807
        ELSE per_payment * payments_max
    END);

-- The window time of the last count, and what the clocks said then: milliseconds
-- since the epoch. What has to be known to go on after a restart.
CREATE TABLE anchor (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    window INTEGER NOT NULL,
    wall INTEGER NOT NULL,
    -- The time of the chain's last block, where it was known.
    chain INTEGER
) STRICT;

-- Until now a payment was counted at the wall's time.
INSERT INTO anchor (id, window, wall)
SELECT 1, counted_at, counted_at FROM payments ORDER BY counted_at DESC LIMIT 1;

CREATE INDEX payments_by_payee ON payments (payee, counted_at, amount);
