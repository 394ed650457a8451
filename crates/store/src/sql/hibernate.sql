INSERT OR REPLACE INTO hibernation (one, since, reason, ledger_seq, inbox_seq, wake_seq)
SELECT 1, ?1, ?2,
    (SELECT coalesce(max(seq), 0) FROM ledger),
    (SELECT coalesce(max(seq), 0) FROM inbox_messages),
    (SELECT coalesce(max(seq), 0) FROM wake_events)
