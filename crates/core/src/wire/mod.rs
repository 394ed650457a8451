//! Pure: every byte format that is shared with another program.
//!
//! Only plain data with serde derives lives here: no behaviour beyond
//! construction, and nothing that the rest of the workspace would store or
//! decide upon without converting it first.

pub mod brain;
pub mod chat;
pub mod cloud;
pub mod control;
pub mod judge;
pub mod sign_in;
pub mod x402;
