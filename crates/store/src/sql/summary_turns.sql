-- The oldest turns that no prompt shows and nothing sums up, newest first. ?1 how many before the
-- history are looked at, ?2 turns at most.
SELECT * FROM (
    SELECT id, seq, (SELECT id FROM sessions WHERE seq = session) AS session, status, thought, model, prompt_tokens, cached_tokens,
           completion_tokens, cost_microcents, estimated, first_token_ms, total_ms, unknown_end, opened_at, committed_at
    FROM turns
    WHERE status = 'committed' AND seq < (SELECT history_from FROM automaton)
        AND seq >= max(
            (SELECT history_from FROM automaton) - ?1,
            (SELECT coalesce(max(upto), 0) FROM session_summaries)
        )
    ORDER BY seq
    LIMIT ?2
)
ORDER BY seq DESC
