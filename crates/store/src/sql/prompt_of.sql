SELECT turns.*, prompt_heads.layers
FROM turns JOIN prompt_heads ON prompt_heads.seq = turns.head
WHERE turns.id = ?1
