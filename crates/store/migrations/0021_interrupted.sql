-- A wake may end because the creator interrupts it; the stored rows stay as they are.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, ''', ''crash''', ''', ''interrupted'', ''crash''')
WHERE type = 'table' AND name IN ('automaton', 'sessions');
PRAGMA writable_schema = RESET;
