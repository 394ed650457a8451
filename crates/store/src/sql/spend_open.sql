SELECT *
FROM spends
WHERE state IN ('proposed', 'signed', 'submitted')
