UPDATE vitals
SET credits = ?1, read_at = ?2, usdc = ?3, seen_at = ?4, broke_ms = ?5, refused = ?6, thrift_since = ?7, thrift_tier = ?8
