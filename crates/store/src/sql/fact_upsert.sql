INSERT INTO semantic_memory (
    id, category, key, value, label, source, confidence_percent, turn, created_at, updated_at
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)
ON CONFLICT (category, key) DO UPDATE
SET value = excluded.value, label = excluded.label, source = excluded.source,
    confidence_percent = excluded.confidence_percent, turn = excluded.turn,
    updated_at = excluded.updated_at
