UPDATE limits SET
    per_payment = COALESCE(?1, per_payment),
    per_day = COALESCE(?2, per_day),
    payments_max = COALESCE(?3, payments_max)
