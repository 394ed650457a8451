//! What the automaton may change about itself.

pub(crate) mod modify_heartbeat;
