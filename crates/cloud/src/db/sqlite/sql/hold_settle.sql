UPDATE holds
SET state = 'settled', cost = ?2, charged = ?3, prompt_tokens = ?4, cached_tokens = ?5,
    cache_write_tokens = ?6, completion_tokens = ?7, metering = ?8, closed_at = ?9
WHERE id = ?1
