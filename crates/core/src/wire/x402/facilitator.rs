//! Pure: what a seller asks a facilitator, in both versions.
//!
//! Source: the x402 specification, facilitator interface. A payment that is not
//! good is an answer like any other; a status must never be read in its place.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Extra, PaymentPayload, lenient, v1, v2};

/// The body of `POST /verify` and `POST /settle`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FacilitatorRequest {
    /// The version that the seller speaks.
    #[serde(rename = "x402Version", deserialize_with = "lenient::whole")]
    pub version: u32,
    /// Payment of the buyer.
    pub payment_payload: PaymentPayload,
    /// Requirements of the seller.
    pub payment_requirements: PaymentRequirements,
}

/// Requirements of a seller. Version 2 has a field `amount`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PaymentRequirements {
    /// Version 2.
    V2(v2::PaymentRequirementsV2),
    /// Version 1.
    V1(v1::PaymentRequirementsV1),
}

/// The reply to `POST /verify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifyResponse {
    /// True if the payment can be settled now.
    pub is_valid: bool,
    /// Code of x402's SDKs for the reason, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid_reason: Option<String>,
    /// Address of the payer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
}

/// The reply to `GET /supported`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SupportedResponse {
    /// Schemes and networks that can be settled.
    pub kinds: Vec<SupportedKind>,
    /// Extensions of the facilitator.
    pub extensions: Vec<String>,
    /// By a pattern of chains, the accounts that send the transactions.
    pub signers: BTreeMap<String, Vec<String>>,
}

/// One kind of payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupportedKind {
    /// The version.
    #[serde(rename = "x402Version")]
    pub version: u32,
    /// The scheme.
    pub scheme: String,
    /// The chain, as the version writes it.
    pub network: String,
    /// The token's domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Extra>,
}
