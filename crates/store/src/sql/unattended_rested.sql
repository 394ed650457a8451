UPDATE automaton
SET unattended_since = (SELECT coalesce(max(seq), 0) FROM ledger), rests = rests + 1
