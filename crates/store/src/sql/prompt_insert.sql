INSERT INTO prompts (turn, head, status, history_from, history_sha256, history_chars, history_tokens, memory_sha256,
    memory_chars, memory_tokens, input_sha256, input_chars, input_tokens, window_tokens, answer_tokens, at, shown,
    open_sha256, open_chars, open_tokens, digest_sha256, digest_chars, digest_tokens)
VALUES (?1, (SELECT seq FROM prompt_heads WHERE sha256 = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
    ?17, ?18, ?19, ?20, ?21, ?22, ?23)
