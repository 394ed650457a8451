DELETE FROM api_keys WHERE hash IN (
    SELECT hash FROM api_keys WHERE wallet = ?1 ORDER BY made_at
    LIMIT max(0, (SELECT count(*) FROM api_keys WHERE wallet = ?1) - ?2)
)
