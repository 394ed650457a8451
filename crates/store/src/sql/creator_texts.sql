-- Messages and wake-ups of the creator with a word.
SELECT body AS text FROM inbox_messages WHERE label = 'creator' AND instr(lower(body), ?1) > 0
UNION ALL
SELECT reason FROM wake_events WHERE label = 'creator' AND instr(lower(reason), ?1) > 0
