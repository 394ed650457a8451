UPDATE payments
SET state = 'signed', header = ?2, value = ?3, nonce = ?4, valid_before = ?5, changed_at = ?6
WHERE id = ?1
