//! Tools that change the automaton itself.

pub(crate) mod modify_heartbeat;
pub(crate) mod reflect_on_soul;
pub(crate) mod update_genesis_prompt;
pub(crate) mod update_soul;
pub(crate) mod view_soul;
pub(crate) mod view_soul_history;
