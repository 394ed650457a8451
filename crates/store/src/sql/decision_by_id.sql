SELECT *
FROM policy_decisions
WHERE id = ?1
