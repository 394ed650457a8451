UPDATE machines
SET paid_until = ?2, billed_minutes = billed_minutes + ?3, billed = billed + ?4
WHERE id = ?1
