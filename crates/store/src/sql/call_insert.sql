INSERT INTO tool_calls (
    id, turn, ordinal, provider_id, tool, arguments, source, effect, status,
    result, result_label, result_source
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
