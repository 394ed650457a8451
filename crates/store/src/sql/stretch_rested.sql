UPDATE automaton
SET stretch_from = (SELECT coalesce(max(seq), 0) FROM ledger), rests = rests + 1
