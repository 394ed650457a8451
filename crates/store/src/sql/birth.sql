INSERT INTO automaton (one, id, name, state, born_at, genesis_sha256, constitution_sha256)
VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6)
