-- A choice to live cheaply, pleas in the model's own words, and waking for money.

-- Enumerations that grew; the stored rows stay as they are.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''observe'',', '''observe'', ''plead'', ''economise'',')
WHERE type = 'table' AND name = 'intents';
UPDATE sqlite_schema SET sql = replace(sql, '''manual'', ''recovery''', '''manual'', ''money'', ''recovery''')
WHERE type = 'table' AND name = 'wake_events';
PRAGMA writable_schema = RESET;

-- Since when it lives cheaply, with the tier of that time; and when the model last
-- pleaded.
ALTER TABLE vitals ADD COLUMN thrift_since INTEGER;
ALTER TABLE vitals ADD COLUMN thrift_tier TEXT CHECK (thrift_tier IN ('dead', 'critical', 'low_compute', 'normal', 'high'));
ALTER TABLE vitals ADD COLUMN own_at INTEGER;
