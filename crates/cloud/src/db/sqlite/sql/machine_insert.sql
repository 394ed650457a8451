INSERT INTO machines
    (id, short_id, owner, name, tier, monthly, state, since, created_at, request_name, request)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'requested', ?7, ?7, ?8, ?9)
