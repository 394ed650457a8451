//! Pure: selects one of the offered ways to pay, or none.
//!
//! The payment is known before the server is asked: the token, the price and, if it is pinned, the
//! payee. An offer that differs is refused with the difference named. There must never be a
//! "closest" one that is signed anyway.

use alloy_primitives::Address;
use automaton_core::money::MicroUsdc;
use automaton_core::text::visible;
use automaton_core::wire::x402::{ChainId, EXACT, TokenDomain, atomic};

use super::offer::{OfferTerms, PaymentOffer};

/// The longest time for which an authorization is signed, in seconds.
pub const SECONDS_MAX: u64 = 600;
/// The longest time that a server may ask for, in seconds. Up to here the
/// shorter one is signed; beyond it the demand is no honest one.
const SECONDS_ASKED_MAX: u64 = 3600;
/// The shortest, in seconds: less would be over before it is settled.
const SECONDS_ASKED_MIN: u64 = 10;
/// Characters of the server's words that a refusal shows.
const SHOWN_CHARS_MAX: usize = 80;

/// The payment that may be made, whatever the server asks.
#[derive(Debug, Clone, Copy)]
pub struct PaymentExpectation<'a> {
    /// The token, from the wallet's own table.
    pub token: &'a TokenDomain,
    /// The payee, where it is known.
    pub payee: Option<Address>,
    /// The price.
    pub price: Price,
}

/// The amount that may be paid, as a limit or exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Price {
    /// A price that is known beforehand, such as that of a credit tier.
    Exactly(MicroUsdc),
    /// A cap.
    AtMost(MicroUsdc),
}

/// An offer that is what was wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedOffer {
    /// The payee.
    pub payee: Address,
    /// The amount.
    pub amount: MicroUsdc,
    /// The validity of the authorization, in seconds; at most [`SECONDS_MAX`].
    pub seconds: u64,
    /// The offer, for the header that pays.
    pub offer: PaymentOffer,
}

/// The reason why an offer is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OfferRefusal {
    /// Nothing is offered.
    #[error("the demand names no way to pay")]
    NoWay,
    /// Another scheme than `exact`.
    #[error("the scheme '{0}' is not paid by this wallet, only '{EXACT}' is")]
    Scheme(String),
    /// The transfer is authorized in another way than by EIP-3009.
    #[error("a transfer by '{0}' is not paid by this wallet, only by 'eip3009'")]
    Method(String),
    /// Another chain.
    #[error("it asks for payment on '{asked}', and the wallet is on {wanted}")]
    Network {
        /// The server's value.
        asked: String,
        /// The wallet's chain.
        wanted: ChainId,
    },
    /// Another token.
    #[error("it asks for the token {asked}, and USDC is {wanted} there")]
    Asset {
        /// The server's value.
        asked: String,
        /// USDC.
        wanted: Address,
    },
    /// The token under another name.
    #[error("it calls the token '{asked}', whose EIP-712 domain is '{wanted}'")]
    Domain {
        /// The server's value.
        asked: String,
        /// The token's value.
        wanted: String,
    },
    /// An entry that cannot be read.
    #[error("its way to pay cannot be read: {0}")]
    Unreadable(String),
    /// The payee is no address.
    #[error("the payee '{0}' is no address")]
    NoPayee(String),
    /// Another payee.
    #[error("it asks to pay {asked}, and {wanted} is who was paid before")]
    Payee {
        /// The payee of the offer.
        asked: Address,
        /// The pinned payee.
        wanted: Address,
    },
    /// The amount is no amount.
    #[error("'{0}' is no amount in base units")]
    NoAmount(String),
    /// Another price.
    #[error("it asks for {asked} where the price is {wanted}")]
    Amount {
        /// The server's value.
        asked: MicroUsdc,
        /// The price.
        wanted: MicroUsdc,
    },
    /// More than the cap.
    #[error("it asks for {asked}, more than the cap of {cap}")]
    TooMuch {
        /// The server's value.
        asked: MicroUsdc,
        /// The cap.
        cap: MicroUsdc,
    },
    /// A deadline that no honest server asks for.
    #[error(
        "it asks for an authorization of {0} seconds, and {SECONDS_ASKED_MIN} to \
         {SECONDS_ASKED_MAX} is what one may take"
    )]
    Seconds(u64),
}

/// Takes the first offer that is what was wanted.
///
/// # Errors
/// The refusal of the first offer of scheme `exact`, or of the first one.
pub fn select(
    offers: Vec<PaymentOffer>,
    wanted: &PaymentExpectation<'_>,
) -> Result<SelectedOffer, OfferRefusal> {
    let mut refusal = OfferRefusal::NoWay;
    for offer in offers {
        match check(&offer, wanted) {
            Ok((payee, amount, seconds)) => {
                return Ok(SelectedOffer { payee, amount, seconds, offer });
            }
            Err(OfferRefusal::Scheme(scheme)) if refusal == OfferRefusal::NoWay => {
                refusal = OfferRefusal::Scheme(scheme);
            }
            Err(OfferRefusal::Scheme(_)) => {}
            Err(other) if matches!(refusal, OfferRefusal::NoWay | OfferRefusal::Scheme(_)) => {
                refusal = other
            }
            Err(_) => {}
        }
    }
    Err(refusal)
}

fn check(
    offer: &PaymentOffer,
    wanted: &PaymentExpectation<'_>,
) -> Result<(Address, MicroUsdc, u64), OfferRefusal> {
    let chain = wanted.token.chain;
    // Scheme and network come first: an entry for another one may have fields of its own.
    if let Some(other) = offer.scheme().filter(|scheme| *scheme != EXACT) {
        return Err(OfferRefusal::Scheme(shorten(other)));
    }
    if let Some(other) = offer.network().filter(|name| ChainId::parse(name) != Some(chain)) {
        return Err(OfferRefusal::Network { asked: shorten(other), wanted: chain });
    }
    let terms = offer.terms().map_err(|problem| OfferRefusal::Unreadable(shorten(problem)))?;
    check_token(terms, wanted.token)?;
    let no_payee = || OfferRefusal::NoPayee(shorten(terms.pay_to));
    let payee: Address = terms.pay_to.parse().map_err(|_| no_payee())?;
    match wanted.payee {
        Some(pinned) if pinned != payee => {
            return Err(OfferRefusal::Payee { asked: payee, wanted: pinned });
        }
        // Nobody is paid by burning.
        _ if payee.is_zero() => return Err(no_payee()),
        _ => {}
    }
    let amount = check_price(terms.amount, wanted.price)?;
    let seconds = terms.seconds;
    if !(SECONDS_ASKED_MIN..=SECONDS_ASKED_MAX).contains(&seconds) {
        return Err(OfferRefusal::Seconds(seconds));
    }
    Ok((payee, amount, seconds.min(SECONDS_MAX)))
}

fn check_token(terms: OfferTerms<'_>, token: &TokenDomain) -> Result<(), OfferRefusal> {
    if terms.asset.parse() != Ok(token.contract) {
        return Err(OfferRefusal::Asset { asked: shorten(terms.asset), wanted: token.contract });
    }
    let Some(extra) = terms.extra else { return Ok(()) };
    let method = extra.asset_transfer_method.as_deref().unwrap_or("eip3009");
    if method != "eip3009" {
        return Err(OfferRefusal::Method(shorten(method)));
    }
    for (asked, own) in [(&extra.name, &token.name), (&extra.version, &token.version)] {
        if let Some(asked) = asked.as_deref().filter(|asked| asked != own) {
            return Err(OfferRefusal::Domain { asked: shorten(asked), wanted: own.clone() });
        }
    }
    Ok(())
}

fn check_price(text: &str, price: Price) -> Result<MicroUsdc, OfferRefusal> {
    let none = || OfferRefusal::NoAmount(shorten(text));
    let units = atomic(text).ok_or_else(none)?;
    // More than fits is more than any price.
    let asked = MicroUsdc::new(units.try_into().unwrap_or(u64::MAX));
    match price {
        _ if asked == MicroUsdc::ZERO => Err(none()),
        Price::Exactly(wanted) if asked != wanted => Err(OfferRefusal::Amount { asked, wanted }),
        Price::AtMost(cap) if asked > cap => Err(OfferRefusal::TooMuch { asked, cap }),
        Price::Exactly(_) | Price::AtMost(_) => Ok(asked),
    }
}

/// Shortens the server's words to one line of visible letters.
fn shorten(text: &str) -> String {
    visible(text).chars().filter(|letter| !letter.is_control()).take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
