-- ?1 now, ?2 the time before which the last one may have been. One of a time to come is
-- of a clock that was set back.
UPDATE vitals
SET critical_at = ?1
WHERE critical_at IS NULL OR critical_at <= ?2 OR critical_at > ?1
