-- ?1 whose status, ?2 who asks, ?3 the same as registrations write it.
SELECT report, received_at
FROM statuses
WHERE wallet = ?1
  AND (?1 = ?2 OR EXISTS (
      SELECT 1 FROM registrations WHERE wallet = ?1 AND lower(creator_address) = lower(?3)
  ))
