-- What was booked since nobody attends; a correction counts with what it corrects.
SELECT
    count(*) FILTER (WHERE category = 'inference' AND corrects IS NULL) AS answers,
    coalesce(sum(-amount) FILTER (WHERE category = 'inference'), 0) AS cost,
    coalesce(sum(amount) FILTER (WHERE category = 'revenue'), 0) AS revenue,
    (SELECT rests FROM automaton) AS rests
FROM ledger
WHERE seq > (SELECT unattended_since FROM automaton)
    AND (corrects IS NULL OR corrects > (SELECT unattended_since FROM automaton))
