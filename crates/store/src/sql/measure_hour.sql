-- ?1 when the window begins, ?2 when it ends.
SELECT
    (SELECT count(*) FROM turns WHERE committed_at > ?1 AND committed_at <= ?2) AS turns,
    (
        SELECT count(*)
        FROM turns AS turn
        WHERE turn.committed_at > ?1 AND turn.committed_at <= ?2 AND NOT EXISTS (
            SELECT 1
            FROM wake_events AS wake
            WHERE wake.session = turn.session AND (wake.cause = 'manual' OR wake.label = 'creator')
        )
    ) AS unattended_turns,
    (SELECT count(*) FROM heartbeat_history WHERE at > ?1 AND at <= ?2) AS heartbeat_runs,
    (SELECT count(*) FROM heartbeat_history WHERE at > ?1 AND at <= ?2 AND result <> 'success') AS failed,
    (SELECT count(*) FROM tool_calls WHERE outcome IS NOT NULL AND decided_at > ?1 AND decided_at <= ?2) AS decisions,
    (SELECT count(*) FROM tool_calls WHERE outcome = 'deny' AND decided_at > ?1 AND decided_at <= ?2) AS denied,
    (
        SELECT max(total_ms)
        FROM turns
        WHERE committed_at > ?1 AND committed_at <= ?2
    ) AS slowest_ms
