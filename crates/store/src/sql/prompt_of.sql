SELECT turns.*, head.body AS layers, (SELECT body FROM prompt_parts WHERE seq = turns.shown) AS view,
    (SELECT body FROM prompt_parts WHERE seq = turns.worklog) AS worklog_body
FROM turns JOIN prompt_parts AS head ON head.seq = turns.head
WHERE turns.id = ?1
