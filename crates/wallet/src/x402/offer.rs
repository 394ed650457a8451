//! Pure: what a server asks for, in either version of x402.
//!
//! A demand is looked for where the versions put it: the header of version 2, then the body,
//! then the header that some servers of version 1 use. The first place that holds a way to pay
//! counts. Each way is read by itself, so one that cannot be read does not spoil the others.
//! Nothing is judged here, and a number must never be read as anything but base units.

use std::sync::Arc;

use automaton_core::text::visible;
use automaton_core::wire::x402::{
    ExactPayload, Extra, HeaderError, PAYMENT_REQUIRED, PAYMENT_RESPONSE, PAYMENT_SIGNATURE,
    X_PAYMENT, X_PAYMENT_REQUIRED, X_PAYMENT_RESPONSE, decode, encode, identifier, v1, v2,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Characters of a version that an error shows.
const SHOWN_CHARS_MAX: usize = 40;

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
    /// By version 2.
    V2 {
        /// The way to pay.
        way: v2::PaymentRequirementsV2,
        /// The parts of the demand that the payment repeats.
        echo: Box<PaymentEcho>,
    },
    /// An entry that cannot be read as a way to pay, and is never paid.
    Unreadable {
        /// The scheme, if it names one.
        scheme: Option<String>,
        /// The network, if it names one.
        network: Option<String>,
        /// The field that is missing or wrong.
        problem: String,
    },
}

/// The parts of a demand that a payment of version 2 repeats word for word. Servers compare
/// them with their own.
#[derive(Debug, Clone, PartialEq)]
pub struct PaymentEcho {
    /// The way to pay.
    accepted: Value,
    demand: Arc<DemandEcho>,
}

#[derive(Debug, PartialEq)]
struct DemandEcho {
    resource: Option<Value>,
    extensions: Option<Value>,
}

/// The terms of a way to pay that could be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfferTerms<'a> {
    /// The amount, in base units of the token.
    pub(super) amount: &'a str,
    /// The token's contract.
    pub(super) asset: &'a str,
    /// The payee.
    pub(super) pay_to: &'a str,
    /// The validity of an authorization, in seconds.
    pub(super) seconds: u64,
    /// The token's domain as the server names it.
    pub(super) extra: Option<&'a Extra>,
}

/// A demand of either version, before its ways to pay are read.
#[derive(Deserialize)]
struct Demand {
    #[serde(rename = "x402Version", default)]
    version: Value,
    accepts: Vec<Value>,
    #[serde(default)]
    resource: Value,
    #[serde(default)]
    extensions: Option<Value>,
}

/// A payment of version 2, as it is sent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EchoedPayment<'a> {
    x402_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<&'a Value>,
    accepted: &'a Value,
    payload: ExactPayload,
    #[serde(skip_serializing_if = "Option::is_none")]
    extensions: Option<Value>,
}

/// The part of a settlement's outcome that is read.
#[derive(Deserialize)]
struct SettlementSummary {
    success: bool,
    #[serde(default)]
    transaction: Value,
}

/// A reply with status 402 that asks for nothing that can be read.
#[derive(Debug, thiserror::Error)]
pub enum OfferParseError {
    /// A place where a demand should stand holds something else.
    #[error("the reply asks for payment in no form of x402: its {place} cannot be read")]
    Unreadable {
        /// The place.
        place: &'static str,
        /// The cause.
        #[source]
        source: HeaderError,
    },
    /// The body is no text.
    #[error("the reply asks for payment in no form of x402: its body is not UTF-8")]
    NotText(#[source] std::str::Utf8Error),
    /// A version of x402 that is not paid.
    #[error(
        "the reply asks for payment by version {version} of x402 in its {place}; this wallet \
         pays by the versions 1 and 2"
    )]
    Version {
        /// The place.
        place: &'static str,
        /// The version, as the server wrote it.
        version: String,
    },
}

/// The ways to pay that a reply with status 402 names, in its order.
///
/// # Errors
/// [`OfferParseError`] of the first place that holds something else than a demand, if no place
/// holds one.
pub fn offers(reply: PaymentRequiredParts<'_>) -> Result<Vec<PaymentOffer>, OfferParseError> {
    let body = std::str::from_utf8(reply.body).map_err(OfferParseError::NotText);
    let places = [
        (PAYMENT_REQUIRED, reply.payment_required.map(Ok), v2::VERSION),
        ("body", Some(body), v1::VERSION),
        (X_PAYMENT_REQUIRED, reply.x_payment_required.map(Ok), v1::VERSION),
    ];
    let mut first_error = None;
    let mut has_demand = false;
    for (place, text, usual_version) in places {
        let Some(text) = text else { continue };
        match text.and_then(|text| read_ways(place, text, usual_version)) {
            Ok(ways) if ways.is_empty() => has_demand = true,
            Ok(ways) => return Ok(ways),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    match first_error {
        Some(error) if !has_demand => Err(error),
        _ => Ok(Vec::new()),
    }
}

/// Reads the ways to pay that a text names.
fn read_ways(
    place: &'static str,
    text: &str,
    usual_version: u32,
) -> Result<Vec<PaymentOffer>, OfferParseError> {
    let demand: Demand =
        decode(text).map_err(|source| OfferParseError::Unreadable { place, source })?;
    let version = match &demand.version {
        Value::Null => guess_version(&demand.accepts, usual_version),
        Value::Number(number) if number.as_u64() == Some(1) => v1::VERSION,
        Value::Number(number) if number.as_u64() == Some(2) => v2::VERSION,
        Value::String(text) if text == "1" => v1::VERSION,
        Value::String(text) if text == "2" => v2::VERSION,
        other => {
            let version = visible(&other.to_string()).chars().take(SHOWN_CHARS_MAX).collect();
            return Err(OfferParseError::Version { place, version });
        }
    };
    if version == v1::VERSION {
        return Ok(demand.accepts.iter().map(read_way_v1).collect());
    }
    let echo = DemandEcho {
        resource: match demand.resource {
            Value::String(url) => Some(json!({ "url": url })),
            resource @ Value::Object(_) => Some(resource),
            _ => None,
        },
        extensions: demand.extensions,
    };
    let echo = Arc::new(echo);
    Ok(demand.accepts.into_iter().map(|way| read_way_v2(way, &echo)).collect())
}

/// The version of a demand that names none: its ways to pay tell it by how they call the amount.
fn guess_version(ways: &[Value], usual: u32) -> u32 {
    let has = |key: &str| ways.iter().any(|way| way.get(key).is_some());
    match (has("maxAmountRequired"), has("amount")) {
        (true, false) => v1::VERSION,
        (false, true) => v2::VERSION,
        _ => usual,
    }
}

fn read_way_v1(entry: &Value) -> PaymentOffer {
    read_entry(entry).map_or_else(|problem| unreadable(entry, problem), PaymentOffer::V1)
}

fn read_way_v2(entry: Value, demand: &Arc<DemandEcho>) -> PaymentOffer {
    match read_entry(&entry) {
        Ok(way) => {
            let echo = PaymentEcho { accepted: entry, demand: Arc::clone(demand) };
            PaymentOffer::V2 { way, echo: Box::new(echo) }
        }
        Err(problem) => unreadable(&entry, problem),
    }
}

/// Reads an entry, or names the field that is missing or wrong.
fn read_entry<T: DeserializeOwned>(entry: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(entry).map_err(|error| error.to_string())
}

fn unreadable(entry: &Value, problem: String) -> PaymentOffer {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    PaymentOffer::Unreadable { scheme: text("scheme"), network: text("network"), problem }
}

/// The transaction that a paid reply names, by either version's header: the server's word,
/// which settles nothing.
pub fn transaction<'a>(header: impl Fn(&'static str) -> Option<&'a str>) -> Option<String> {
    let values = [PAYMENT_RESPONSE, X_PAYMENT_RESPONSE].into_iter().filter_map(header);
    // silent-ok: a header that cannot be read names none; the next one may.
    let mut summaries = values.filter_map(|value| decode::<SettlementSummary>(value).ok());
    let summary = summaries.next().filter(|summary| summary.success)?;
    // silent-ok: a text that is no hash names no transaction.
    let hash: alloy_primitives::B256 = summary.transaction.as_str()?.parse().ok()?;
    Some(hash.to_string())
}

impl PaymentOffer {
    /// The scheme, if it names one.
    #[must_use]
    pub fn scheme(&self) -> Option<&str> {
        match self {
            Self::V1(way) => Some(&way.scheme),
            Self::V2 { way, .. } => Some(&way.scheme),
            Self::Unreadable { scheme, .. } => scheme.as_deref(),
        }
    }

    /// The network, by name or as CAIP-2, if it names one.
    #[must_use]
    pub fn network(&self) -> Option<&str> {
        match self {
            Self::V1(way) => Some(&way.network),
            Self::V2 { way, .. } => Some(&way.network),
            Self::Unreadable { network, .. } => network.as_deref(),
        }
    }

    /// The terms, or the field that is missing or wrong.
    pub(super) fn terms(&self) -> Result<OfferTerms<'_>, &str> {
        match self {
            Self::V1(way) => Ok(OfferTerms {
                amount: &way.max_amount_required,
                asset: &way.asset,
                pay_to: &way.pay_to,
                seconds: way.max_timeout_seconds,
                extra: way.extra.as_ref(),
            }),
            Self::V2 { way, .. } => Ok(OfferTerms {
                amount: &way.amount,
                asset: &way.asset,
                pay_to: &way.pay_to,
                seconds: way.max_timeout_seconds,
                extra: way.extra.as_ref(),
            }),
            Self::Unreadable { problem, .. } => Err(problem),
        }
    }

    /// The header that pays, with its value. Where the server knows payments by an
    /// identifier (extension `payment-identifier`), `id` is it.
    ///
    /// # Errors
    /// Fails if the value cannot be written as JSON, or this is no way to pay.
    pub fn payment(
        &self,
        payload: ExactPayload,
        id: &str,
    ) -> Result<(&'static str, String), serde_json::Error> {
        match self {
            Self::V1(way) => {
                let scheme = way.scheme.clone();
                let network = way.network.clone();
                let payment =
                    v1::PaymentPayloadV1 { version: v1::VERSION, scheme, network, payload };
                Ok((X_PAYMENT, encode(&payment)?))
            }
            Self::V2 { echo, .. } => {
                let mut extensions = echo.demand.extensions.clone();
                let place = extensions.as_mut().and_then(|all| all.get_mut(identifier::KEY));
                if let Some(Value::Object(info)) = place.and_then(|one| one.get_mut("info")) {
                    info.insert("id".to_owned(), Value::from(id));
                }
                let payment = EchoedPayment {
                    x402_version: v2::VERSION,
                    resource: echo.demand.resource.as_ref(),
                    accepted: &echo.accepted,
                    payload,
                    extensions,
                };
                Ok((PAYMENT_SIGNATURE, encode(&payment)?))
            }
            Self::Unreadable { problem, .. } => {
                Err(serde::ser::Error::custom(format!("this way to pay cannot be read: {problem}")))
            }
        }
    }
}
