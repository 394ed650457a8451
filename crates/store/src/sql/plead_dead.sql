-- ?1 now, ?2 the time before which the last one may have been. One of a time to come is
-- of a clock that was set back.
UPDATE vitals
SET dead_at = ?1
WHERE dead_at IS NULL OR dead_at <= ?2 OR dead_at > ?1
