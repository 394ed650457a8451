//! Machines for rent, and ports that everybody may reach.
//!
//! What costs credits is judged before; a machine is never rented in the place of another
//! that could not be reached.

pub(crate) mod create_sandbox;
pub(crate) mod delete_sandbox;
pub(crate) mod expose_port;
pub(crate) mod list_sandboxes;
pub(crate) mod remove_port;

#[cfg(test)]
mod tests;
