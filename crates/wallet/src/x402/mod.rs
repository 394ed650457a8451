//! Payment over HTTP status 402, as a client.

pub mod offer;
pub mod select;

pub use offer::{Demand, Offer, Unreadable, X_PAYMENT_REQUIRED, offers, transaction};
pub use select::{Chosen, Price, Refusal, Wanted, select};
