-- What answers cost in each hour since 1970, by the wake cycle that thought, and 0 for none: else a
-- day of thousands of answers would be added up anew before each of them.
CREATE TABLE thinking_hours (
    hour    INTEGER NOT NULL,
    session INTEGER NOT NULL,
    spent   INTEGER NOT NULL,
    PRIMARY KEY (hour, session)
) STRICT, WITHOUT ROWID;
INSERT INTO thinking_hours (hour, session, spent)
SELECT at / 3600000, coalesce((SELECT session FROM turns WHERE seq = ledger.turn), 0), sum(-amount)
FROM ledger
WHERE category = 'inference'
GROUP BY 1, 2;
CREATE TRIGGER ledger_thinking AFTER INSERT ON ledger WHEN NEW.category = 'inference' BEGIN
    INSERT INTO thinking_hours (hour, session, spent)
    VALUES (NEW.at / 3600000, coalesce((SELECT session FROM turns WHERE seq = NEW.turn), 0), -NEW.amount)
    ON CONFLICT (hour, session) DO UPDATE SET spent = spent + excluded.spent;
END;
