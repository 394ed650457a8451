SELECT prompts.*, prompt_heads.layers
FROM prompts JOIN prompt_heads ON prompt_heads.seq = prompts.head
WHERE turn = ?1
