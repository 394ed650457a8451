UPDATE turns
SET head = (SELECT seq FROM prompt_parts WHERE sha256 = ?2), moment = ?3, history_from = ?4,
    history_sha256 = ?5, history_chars = ?6, history_tokens = ?7,
    memory_sha256 = ?8, memory_chars = ?9, memory_tokens = ?10,
    input_sha256 = ?11, input_chars = ?12, input_tokens = ?13,
    window_tokens = ?14, answer_tokens = ?15, asked_at = ?16, shown = (SELECT seq FROM prompt_parts WHERE sha256 = ?17),
    open_sha256 = ?18, open_chars = ?19, open_tokens = ?20,
    digest_sha256 = ?21, digest_chars = ?22, digest_tokens = ?23,
    worklog = (SELECT seq FROM prompt_parts WHERE sha256 = ?24),
    worklog_sha256 = ?25, worklog_chars = ?26, worklog_tokens = ?27
WHERE id = ?1 AND asked_at IS NULL
