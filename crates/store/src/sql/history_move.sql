UPDATE automaton
SET history_from = max(history_from, ?1),
    shortened_until = max(shortened_until, ?2),
    arguments_until = max(arguments_until, ?3),
    move_told = ?4
