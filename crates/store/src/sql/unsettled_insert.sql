-- Its booking is the row that was just added to the ledger.
INSERT INTO unsettled_answers (id, turn, cloud, most, booking, at)
VALUES (?1, ?2, ?3, ?4, last_insert_rowid(), ?5)
