-- Arguments are shortened before results are, and the model is told once before a move.
ALTER TABLE automaton ADD COLUMN arguments_until INTEGER NOT NULL DEFAULT 1 CHECK (arguments_until >= 1);
ALTER TABLE automaton ADD COLUMN move_told INTEGER NOT NULL DEFAULT 0 CHECK (move_told IN (0, 1));
