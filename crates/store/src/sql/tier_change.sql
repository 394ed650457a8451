INSERT INTO tier_changes (from_tier, to_tier, credits, at)
VALUES (?1, ?2, ?3, ?4)
