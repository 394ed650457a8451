//! `audit_changes`: rows that may change, and that the audit chain covers all the same.
//!
//! What an automaton believes of itself lies in rows that are written again: messages, turns
//! and their calls, memories, the schedule. The link of a write therefore covers a list of
//! the rows that it changed, each with the hash of what it left ([`changes`]). The newest entry
//! for a row says what the row must be; [`check`] compares them. Entries that later ones
//! made worthless are dropped by [`fold`], which tells so in a link of its own.
//!
//! Nobody who writes has to remember any of this: triggers of the writer's own connection
//! see each row that changes, and with what it held before ([`watch`]). A row that another
//! program changed is therefore found also when this one writes it again or deletes it, and is
//! told of in a link for ever.

pub(crate) mod changes;
pub(crate) mod check;
pub(crate) mod covered;
pub(crate) mod fold;
pub(crate) mod watch;
