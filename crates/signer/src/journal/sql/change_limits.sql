UPDATE limits SET
    per_payment = ?1, per_hour = ?2, per_day = ?3, per_payee = ?4, lifetime = ?5, payments_max = ?6
