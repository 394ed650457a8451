-- The words with which a turn ends its wake are delivered by whoever commits it, also after
-- a crash: their label, and none where its words are only thought.
ALTER TABLE turns ADD COLUMN voice TEXT CHECK (voice IN ('creator', 'self', 'tool', 'peer', 'web'));
