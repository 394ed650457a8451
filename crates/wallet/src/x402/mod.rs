//! Payment over HTTP status 402, as a client.

pub mod offer;
pub mod select;

pub use offer::{OfferParseError, PaymentOffer, PaymentRequiredParts, offers, transaction};
pub use select::{OfferRefusal, PaymentExpectation, Price, SelectedOffer, select};
