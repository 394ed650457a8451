-- ?1 the time 24 hours ago, ?2 that of an hour ago. A wake that goes on for longer than a day
-- is counted by its last day. Of the hour in which the day begins, and of the last one, bookings are
-- added up; hours that are in it whole have a sum.
WITH
    awake AS (SELECT seq FROM sessions WHERE ended_at IS NULL),
    whole AS (SELECT session, spent FROM thinking_hours WHERE hour > ?1 / 3600000),
    begun AS (
        SELECT turn, -amount AS spent FROM ledger
        WHERE category = 'inference' AND at > ?1 AND at < (?1 / 3600000 + 1) * 3600000
    )
SELECT
    (SELECT coalesce(sum(spent), 0) FROM whole) + (SELECT coalesce(sum(spent), 0) FROM begun) AS day,
    (SELECT coalesce(sum(-amount), 0) FROM ledger WHERE category = 'inference' AND at > ?2) AS hour,
    (SELECT coalesce(sum(spent), 0) FROM whole WHERE session = (SELECT seq FROM awake)) + (
        SELECT coalesce(sum(spent), 0) FROM begun
        WHERE turn >= (SELECT min(seq) FROM turns WHERE session = (SELECT seq FROM awake))
    ) AS session
