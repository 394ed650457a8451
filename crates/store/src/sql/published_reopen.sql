UPDATE published_ports SET state = ?2, decision = ?3, at = ?4 WHERE port = ?1
