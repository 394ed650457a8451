-- Links that have a list of changes, of which the chain says nothing.
SELECT DISTINCT link FROM audit_changes
WHERE NOT EXISTS (SELECT 1 FROM audit_chain WHERE seq = link AND changes IS NOT NULL)
ORDER BY link
LIMIT 100
