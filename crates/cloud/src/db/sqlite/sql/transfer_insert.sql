INSERT INTO transfers
    (id, api_key, sender, recipient, cents, note, name, request, balance_after, at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
