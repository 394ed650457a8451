INSERT INTO published_ports (port, price, url, commands, call, turn, state, at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (port) DO UPDATE SET
    price = excluded.price,
    url = excluded.url,
    commands = excluded.commands,
    call = excluded.call,
    turn = excluded.turn,
    state = excluded.state,
    at = excluded.at
