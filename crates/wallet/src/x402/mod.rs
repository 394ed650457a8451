//! Payment over HTTP status 402, as a client.

pub mod offer;
pub mod select;

pub use offer::{Demand, Offer, Unreadable, offers};
pub use select::{Chosen, Price, Refusal, Wanted, select};
