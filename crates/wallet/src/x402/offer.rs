//! Pure: what a server asks for, in either version of x402.
//!
//! A demand is looked for where the versions put it: the header of version 2,
//! then the body of version 1, then the header that some servers of version 1
//! use. Nothing is judged here, and a number must never be read as anything but
//! base units.

use std::sync::Arc;

use automaton_core::wire::x402::{
    ExactPayload, Extra, HeaderError, PAYMENT_RESPONSE, PAYMENT_SIGNATURE, X_PAYMENT,
    X_PAYMENT_RESPONSE, decode, encode, identifier, v1, v2,
};
use serde_json::Value;

/// The largest body that may hold a demand, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Ways to pay that are looked at.
const WAYS_MAX: usize = 16;

/// The parts of a reply with status 402 in which a demand may stand.
#[derive(Debug, Clone, Copy, Default)]
pub struct PaymentRequiredParts<'a> {
    /// `PAYMENT-REQUIRED`.
    pub payment_required: Option<&'a str>,
    /// `X-Payment-Required`.
    pub x_payment_required: Option<&'a str>,
    /// The body.
    pub body: &'a [u8],
}

/// One way to pay, as the server wrote it.
#[derive(Debug, Clone, PartialEq)]
pub enum PaymentOffer {
    /// By version 1.
    V1(v1::PaymentRequirementsV1),
    /// By version 2, with the demand that it stands in.
    V2 {
        /// The way to pay.
        way: v2::PaymentRequirementsV2,
        /// The demand: what is paid for, and the extensions that are echoed.
        demand: Arc<v2::PaymentRequiredV2>,
    },
}

/// A reply with status 402 that asks for nothing that can be read.
#[derive(Debug, thiserror::Error)]
pub enum OfferParseError {
    /// The header of version 2 is none.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The body is longer than any demand.
    #[error("the demand is longer than {BODY_BYTES_MAX} bytes")]
    TooLong,
    /// There is no demand.
    #[error("the reply asks for payment in no form of x402")]
    Nothing(#[source] serde_json::Error),
}

/// The ways to pay that a reply with status 402 names, in its order.
///
/// # Errors
/// [`OfferParseError`] when there is no demand, or one that is broken.
pub fn offers(demand: PaymentRequiredParts<'_>) -> Result<Vec<PaymentOffer>, OfferParseError> {
    if let Some(header) = demand.payment_required {
        let demand: Arc<v2::PaymentRequiredV2> = Arc::new(decode(header)?);
        let offer = |way: &v2::PaymentRequirementsV2| PaymentOffer::V2 {
            way: way.clone(),
            demand: Arc::clone(&demand),
        };
        return Ok(demand.accepts.iter().take(WAYS_MAX).map(offer).collect());
    }
    if demand.body.len() > BODY_BYTES_MAX {
        return Err(OfferParseError::TooLong);
    }
    let required: v1::PaymentRequiredV1 = match serde_json::from_slice(demand.body) {
        Ok(required) => required,
        Err(source) => legacy(demand.x_payment_required).ok_or(OfferParseError::Nothing(source))?,
    };
    Ok(required.accepts.into_iter().take(WAYS_MAX).map(PaymentOffer::V1).collect())
}

/// The demand of a header that holds JSON, or base64 of it.
fn legacy(header: Option<&str>) -> Option<v1::PaymentRequiredV1> {
    let header = header?;
    // silent-ok: one of two forms fails by nature; that neither holds is told.
    serde_json::from_str(header).ok().or_else(|| decode(header).ok())
}

/// The transaction that a paid reply names, by either version's header: the server's
/// word, which settles nothing.
pub fn transaction<'a>(header: impl Fn(&'static str) -> Option<&'a str>) -> Option<String> {
    let value = header(PAYMENT_RESPONSE).or_else(|| header(X_PAYMENT_RESPONSE))?;
    // silent-ok: a header that cannot be read names none.
    let told: v2::SettlementResponse = decode(value).ok()?;
    let hash = told.transaction.parse::<alloy_primitives::B256>();
    // silent-ok: what is no hash is none.
    hash.ok().filter(|_| told.success).map(|hash| hash.to_string())
}

impl PaymentOffer {
    /// The scheme.
    #[must_use]
    pub fn scheme(&self) -> &str {
        match self {
            Self::V1(way) => &way.scheme,
            Self::V2 { way, .. } => &way.scheme,
        }
    }

    /// The network, by name or as CAIP-2.
    #[must_use]
    pub fn network(&self) -> &str {
        match self {
            Self::V1(way) => &way.network,
            Self::V2 { way, .. } => &way.network,
        }
    }

    /// The amount, in base units of the token.
    #[must_use]
    pub fn amount(&self) -> &str {
        match self {
            Self::V1(way) => &way.max_amount_required,
            Self::V2 { way, .. } => &way.amount,
        }
    }

    /// The token's contract.
    #[must_use]
    pub fn asset(&self) -> &str {
        match self {
            Self::V1(way) => &way.asset,
            Self::V2 { way, .. } => &way.asset,
        }
    }

    /// The payee.
    #[must_use]
    pub fn pay_to(&self) -> &str {
        match self {
            Self::V1(way) => &way.pay_to,
            Self::V2 { way, .. } => &way.pay_to,
        }
    }

    /// How long an authorization should be valid, in seconds.
    #[must_use]
    pub const fn seconds(&self) -> u64 {
        match self {
            Self::V1(way) => way.max_timeout_seconds,
            Self::V2 { way, .. } => way.max_timeout_seconds,
        }
    }

    /// The token's domain as the server names it.
    #[must_use]
    pub const fn extra(&self) -> Option<&Extra> {
        match self {
            Self::V1(way) => way.extra.as_ref(),
            Self::V2 { way, .. } => way.extra.as_ref(),
        }
    }

    /// The header that pays, with its value. Where the server knows payments by an
    /// identifier (extension `payment-identifier`), `id` is it.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn payment(
        &self,
        payload: ExactPayload,
        id: &str,
    ) -> Result<(&'static str, String), serde_json::Error> {
        match self {
            Self::V1(way) => {
                let (scheme, network) = (way.scheme.clone(), way.network.clone());
                let payment =
                    v1::PaymentPayloadV1 { version: v1::VERSION, scheme, network, payload };
                Ok((X_PAYMENT, encode(&payment)?))
            }
            Self::V2 { way, demand } => {
                let mut extensions = demand.extensions.clone();
                let place = extensions.as_mut().and_then(|all| all.get_mut(identifier::KEY));
                if let Some(Value::Object(info)) = place.and_then(|one| one.get_mut("info")) {
                    info.insert("id".to_owned(), Value::from(id));
                }
                let payment = v2::PaymentPayloadV2 {
                    version: v2::VERSION,
                    resource: Some(demand.resource.clone()),
                    accepted: way.clone(),
                    payload,
                    extensions,
                };
                Ok((PAYMENT_SIGNATURE, encode(&payment)?))
            }
        }
    }
}
