//! Staying alive: rest, a look at oneself, and what is left when money runs out.

pub(crate) mod choose_tools;
pub(crate) mod distress_signal;
pub(crate) mod enter_low_compute;
pub(crate) mod heartbeat_ping;
pub(crate) mod sleep;
pub(crate) mod system_synopsis;
