INSERT OR REPLACE INTO session_summaries
    (upto, from_turn, session, label, body, model, tokens_before, tokens_after, cost_microcents, at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
