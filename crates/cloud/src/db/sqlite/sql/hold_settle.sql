UPDATE holds
SET state = 'settled', cost = ?2, charged = ?3, prompt_tokens = ?4, cached_tokens = ?5,
    completion_tokens = ?6, metering = ?7, closed_at = ?8
WHERE id = ?1
