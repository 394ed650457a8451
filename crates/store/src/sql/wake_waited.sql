-- A sleep begins: what is pending now has waited for it, and is no news.
UPDATE wake_events SET waited = 1 WHERE session IS NULL
