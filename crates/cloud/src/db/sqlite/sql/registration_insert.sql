INSERT INTO registrations
    (wallet, automaton_id, creator_address, name, bio, genesis_prompt_hash, nonce, payload_hash, at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
