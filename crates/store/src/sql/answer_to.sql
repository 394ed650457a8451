-- What names it; or the words with which a wake ended, which name the newest message that
-- they answer, and are as old as the answer of all others.
SELECT o.*
FROM inbox_messages AS m
JOIN outbox_messages AS o
  ON o.reply_to = m.id OR (m.answered_by = 'words' AND o.reply_to IS NOT NULL AND o.at = m.answered_at)
WHERE m.id = ?1
ORDER BY o.reply_to = m.id DESC, o.seq
LIMIT 1
