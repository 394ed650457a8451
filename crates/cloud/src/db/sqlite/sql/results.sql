-- What is kept of commands' results: for the owner of the machine ?1, whatever the key, and for all.
SELECT count(*) AS whole,
       coalesce(sum(length(result)), 0) AS bytes,
       count(*) FILTER (WHERE is_own) AS own,
       coalesce(sum(length(result)) FILTER (WHERE is_own), 0) AS own_bytes
FROM (SELECT result,
             machine IN (SELECT id FROM machines
                         WHERE owner = (SELECT owner FROM machines WHERE id = ?1)) AS is_own
      FROM executions)
