-- The wallet that the ledger is of, since it was known: the file of its key need
-- not name it.
ALTER TABLE authority ADD COLUMN wallet BLOB CHECK (length(wallet) = 20);
