//! Pure: x402 version 2: everything in headers, chains as CAIP-2.
//!
//! Source: the x402 specification, version 2, transport HTTP. The extensions of
//! a demand are echoed by the client and must never be interpreted here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ExactPayload, Extra, lenient};

/// The number of this version.
pub const VERSION: u32 = 2;

/// Content of `PAYMENT-REQUIRED`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentRequiredV2 {
    /// The version.
    #[serde(rename = "x402Version", deserialize_with = "lenient::whole")]
    pub version: u32,
    /// Reason for the demand, or for the refusal of a payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Resource that is paid for.
    pub resource: ResourceInfo,
    /// The ways to pay.
    pub accepts: Vec<PaymentRequirementsV2>,
    /// Extensions of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Value>,
}

/// Resource that is paid for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceInfo {
    /// Its URL.
    pub url: String,
    /// Description in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// One way to pay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaymentRequirementsV2 {
    /// Scheme: `exact`.
    pub scheme: String,
    /// Network, as CAIP-2.
    pub network: String,
    /// Amount in base units, as decimal digits.
    #[serde(deserialize_with = "lenient::digits")]
    pub amount: String,
    /// The token's contract.
    pub asset: String,
    /// The payee.
    pub pay_to: String,
    /// Validity of the authorization, in seconds.
    #[serde(deserialize_with = "lenient::whole")]
    pub max_timeout_seconds: u64,
    /// The token's domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Extra>,
}

/// Content of `PAYMENT-SIGNATURE`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentPayloadV2 {
    /// The version.
    #[serde(rename = "x402Version", deserialize_with = "lenient::whole")]
    pub version: u32,
    /// Resource that is paid for. It is only passed on, so a form that cannot be read counts as
    /// missing.
    #[serde(
        default,
        deserialize_with = "lenient::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<ResourceInfo>")]
    pub resource: Option<ResourceInfo>,
    /// The way that the client chose.
    pub accepted: PaymentRequirementsV2,
    /// The authorization.
    pub payload: ExactPayload,
    /// The server's extensions, echoed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Value>,
}

/// Content of `PAYMENT-RESPONSE`, for success and failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettlementResponse {
    /// True if the payment was accepted.
    pub success: bool,
    /// Reason of the refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<String>,
    /// Address of the payer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
    /// The transaction; empty when there is none.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub transaction: String,
    /// The chain.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub network: String,
    /// Transaction hash; empty if there is none.
    #[serde(
        default,
        deserialize_with = "lenient::optional_digits",
        skip_serializing_if = "Option::is_none"
    )]
    pub amount: Option<String>,
}
