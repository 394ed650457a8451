-- The id that a wallet registered with, and whether all else but its id and nonce is the same:
-- ?2 creator, ?3 name, ?4 bio, ?5 hash of the genesis prompt.
SELECT automaton_id,
       lower(creator_address) = lower(?2) AND name = ?3 AND bio = ?4 AND genesis_prompt_hash IS ?5
FROM registrations WHERE wallet = ?1
