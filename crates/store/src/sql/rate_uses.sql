-- ?1 a JSON list: each limit's name, and the moment after which its uses count.
SELECT (SELECT count(*) FROM rate_uses WHERE rule = value ->> 0 AND at > value ->> 1)
FROM json_each(?1)
