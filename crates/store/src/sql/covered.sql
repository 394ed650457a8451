-- The rows of the links after ?1, in the order in which each link covers them.
SELECT decided_link AS link, 'decision' AS kind, id, decided_sha256 AS digest FROM tool_calls WHERE decided_link > ?1
UNION ALL
SELECT ended_link, 'outcome', id, ended_sha256 FROM tool_calls WHERE ended_link > ?1
UNION ALL
SELECT link, 'payment', id, sha256 FROM payment_steps WHERE link > ?1
UNION ALL
SELECT link, 'approval', id, sha256 FROM approval_steps WHERE link > ?1
UNION ALL
SELECT seq, 'changes', CAST(seq AS TEXT), changes FROM audit_chain WHERE seq > ?1 AND changes IS NOT NULL
ORDER BY link, kind, id
