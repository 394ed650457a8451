INSERT INTO session_summaries
    (upto, from_turn, session, label, body, model, tokens_before, tokens_after, cost_microcents, at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT (upto) DO UPDATE
SET from_turn = excluded.from_turn, session = excluded.session, label = excluded.label, body = excluded.body,
    model = excluded.model, tokens_before = excluded.tokens_before, tokens_after = excluded.tokens_after,
    cost_microcents = excluded.cost_microcents, at = excluded.at
