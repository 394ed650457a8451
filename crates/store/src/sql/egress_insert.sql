INSERT INTO egress (id, call, method, origin, outcome, code, at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
