//! Money: what comes in over x402 and what calls of models cost.
//!
//! The ledger's rules are in [`crate::ledger`]; no amount here may be taken from
//! a client without having been compared with our own.

pub mod chain;
pub mod facilitator;
pub(crate) mod gas;
mod payment_intake;
pub mod price;
pub mod settlement;
pub(crate) mod settler;

pub(crate) use payment_intake::{PaymentAcceptance, StoredPayment};
