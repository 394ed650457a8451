-- What the vectors of its own and of its creator have in common: the sum of their directions, of all
-- that there ever were of this model, and how many. Vectors from before are made anew, so that none
-- is missing in it.
ALTER TABLE embedding_progress ADD COLUMN added INTEGER NOT NULL DEFAULT 0 CHECK (added >= 0);
ALTER TABLE embedding_progress ADD COLUMN direction BLOB NOT NULL DEFAULT x'';
DELETE FROM memory_vectors;
DELETE FROM embedding_progress;
