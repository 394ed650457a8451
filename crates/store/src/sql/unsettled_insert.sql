INSERT INTO unsettled_answers (id, turn, cloud, most, at)
VALUES (?1, ?2, ?3, ?4, ?5)
