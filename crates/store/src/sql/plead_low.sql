-- ?1 now, ?2 the time before which the last one may have been. One of a time to come is
-- of a clock that was set back.
UPDATE vitals
SET low_at = ?1
WHERE low_at IS NULL OR low_at <= ?2 OR low_at > ?1
