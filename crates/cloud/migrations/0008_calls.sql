-- What its client calls a call, so that one whose answer was not heard is found again.

ALTER TABLE holds ADD COLUMN name TEXT;
CREATE INDEX holds_named ON holds (wallet, name) WHERE name IS NOT NULL;
