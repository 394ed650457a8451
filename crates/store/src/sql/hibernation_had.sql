UPDATE hibernation
SET read_at = iif(credits IS NULL, ?3, read_at),
    credits = coalesce(min(credits, ?1), credits, ?1),
    usdc = coalesce(min(usdc, ?2), usdc, ?2)
