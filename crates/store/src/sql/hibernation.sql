-- ?1 how long before it was first seen a purchase may have come to its end, and be
-- credited since, in milliseconds.
SELECT since, reason, credits, usdc,
    (
        SELECT coalesce(sum(worth), 0)
        FROM payments
        WHERE purpose = 'top_up'
          AND (state IN ('signed', 'submitted', 'unknown') OR (state = 'settled' AND changed_at >= read_at - ?1))
    ) AS bought,
    (SELECT coalesce(sum(amount), 0) FROM ledger WHERE category = 'revenue' AND seq > ledger_seq) AS revenue,
    EXISTS (SELECT 1 FROM inbox_messages WHERE label = 'creator' AND seq > inbox_seq)
        OR EXISTS (
            SELECT 1
            FROM wake_events
            WHERE session IS NULL AND cause = 'manual' AND label = 'creator' AND (seq > wake_seq OR at > since)
        )
        OR EXISTS (SELECT 1 FROM approvals WHERE state IN ('approved', 'used') AND answered_at >= since) AS called
FROM hibernation
