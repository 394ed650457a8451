//! Pure: x402 version 1: the demand in the body, the payment in `X-PAYMENT`.
//!
//! Source: the x402 specification, version 1. Amounts are always base units of
//! the token; a reader must never take a short number for whole dollars.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ExactPayload, Extra, lenient};

/// Content of `X-PAYMENT-RESPONSE`: that of version 2 without an amount.
pub use super::v2::SettlementResponse;

/// The number of this version.
pub const VERSION: u32 = 1;

/// The body of a 402.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentRequiredV1 {
    /// The version.
    #[serde(rename = "x402Version", deserialize_with = "lenient::whole")]
    pub version: u32,
    /// Reason for the demand, or for the refusal of a payment.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub error: String,
    /// The ways to pay.
    pub accepts: Vec<PaymentRequirementsV1>,
}

/// One way to pay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaymentRequirementsV1 {
    /// Scheme: `exact`.
    pub scheme: String,
    /// Network: a name of version 1, or CAIP-2.
    pub network: String,
    /// Amount in base units, as decimal digits.
    #[serde(deserialize_with = "lenient::digits")]
    pub max_amount_required: String,
    /// The token's contract.
    pub asset: String,
    /// The payee.
    pub pay_to: String,
    /// The URL that is paid for.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub resource: String,
    /// Description in words.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub description: String,
    /// The media type of the answer.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub mime_type: String,
    /// Validity of the authorization, in seconds.
    #[serde(deserialize_with = "lenient::whole")]
    pub max_timeout_seconds: u64,
    /// The token's domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Extra>,
}

/// Content of `X-PAYMENT`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentPayloadV1 {
    /// The version that the client echoes: 1, or 2 from clients that speak both
    /// badly.
    #[serde(rename = "x402Version", deserialize_with = "lenient::whole")]
    pub version: u32,
    /// The scheme of the demand.
    pub scheme: String,
    /// The chain, by name or as CAIP-2.
    pub network: String,
    /// The authorization.
    pub payload: ExactPayload,
}
