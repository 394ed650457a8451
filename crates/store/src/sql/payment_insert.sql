INSERT INTO payments (id, purpose, rail, request, origin, payee, chain, asset, payer, units, worth,
    turn, call, goal, note, state, reason, label, source, at, changed_at, counted_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?5, ?19, ?19,
    (SELECT window FROM window_time))
