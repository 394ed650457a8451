-- Machines that are rented and ended, and ports that are opened, are intents too.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, '''egress''', '''egress'', ''rent'', ''end_machine'', ''publish''')
WHERE type = 'table' AND name = 'intents';
PRAGMA writable_schema = RESET;
