//! Pure: x402, payment over HTTP status 402, scheme `exact` on EVM chains.
//!
//! Version 1 lives in [`v1`], version 2 in [`v2`], and what both pay with, an
//! EIP-3009 authorization, in [`eip3009`]. What a peer sends stays text here
//! where it may be anything; amounts are read as decimal digits only and must
//! never pass through a float.

pub mod eip3009;
pub mod facilitator;
pub mod identifier;
mod lenient;
pub mod v1;
pub mod v2;

use std::fmt;

use alloy_primitives::{Address, U256, address};
use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use eip3009::{Authorization, ExactPayload, TokenDomain};

/// The scheme that is spoken here: a transfer of exactly the amount.
pub const EXACT: &str = "exact";
/// Header of a version 1 payment.
pub const X_PAYMENT: &str = "x-payment";
/// Header of the outcome of a version 1 payment.
pub const X_PAYMENT_RESPONSE: &str = "x-payment-response";
/// Header in which some servers put the demand of version 1.
pub const X_PAYMENT_REQUIRED: &str = "x-payment-required";
/// Header of a version 2 demand.
pub const PAYMENT_REQUIRED: &str = "payment-required";
/// Header of a version 2 payment.
pub const PAYMENT_SIGNATURE: &str = "payment-signature";
/// Header of the outcome of a version 2 payment.
pub const PAYMENT_RESPONSE: &str = "payment-response";

/// The contract of USDC on Base.
pub const BASE_USDC: Address = address!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913");
/// The name of USDC in its EIP-712 domain, on every chain but Base's test network.
pub const USDC_NAME: &str = "USD Coin";
/// The version of USDC in that domain.
pub const USDC_VERSION: &str = "2";

/// The largest header value that is decoded, in bytes.
const HEADER_BYTES_MAX: usize = 64 * 1024;

/// Base64 with or without padding. `decode` maps the letters of base64url to it.
const ANY_PADDING: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// An EVM chain. Written `eip155:8453` (CAIP-2); version 1 has names for the
/// chains that were there when it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChainId(pub u64);

impl ChainId {
    /// Base.
    pub const BASE: Self = Self(8453);
    /// Base's test network.
    pub const BASE_SEPOLIA: Self = Self(84532);
    /// Dev chains, ours and those of others, which know no forks.
    pub const DEV: Self = Self(31337);

    /// The contract of USDC, where it is known here.
    #[must_use]
    pub const fn usdc(self) -> Option<Address> {
        match self {
            Self::BASE => Some(BASE_USDC),
            Self::BASE_SEPOLIA => Some(address!("036CbD53842c5426634e7929541eC2318f3dCF7e")),
            Self(_) => None,
        }
    }

    /// Returns the number of blocks that must follow a block before it counts as final, by the
    /// forks that can occur.
    #[must_use]
    pub const fn confirmations(self) -> u64 {
        match self {
            Self::DEV => 0,
            Self(_) => 2,
        }
    }

    /// The name that version 1 writes; CAIP-2 where it has none.
    #[must_use]
    pub fn v1_name(self) -> String {
        match self {
            Self::BASE => "base".to_owned(),
            Self::BASE_SEPOLIA => "base-sepolia".to_owned(),
            Self(_) => self.to_string(),
        }
    }

    /// The chain that a text names in either form; letter case is ignored, since
    /// clients in the field write both.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        match text.as_str() {
            "base" => return Some(Self::BASE),
            "base-sepolia" => return Some(Self::BASE_SEPOLIA),
            _ => {}
        }
        // silent-ok: a reference that is no number names no EVM chain.
        text.strip_prefix("eip155:").and_then(|id| id.parse().ok()).map(Self)
    }
}

impl fmt::Display for ChainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "eip155:{}", self.0)
    }
}

/// Name and version of a token in its EIP-712 domain: `extra` of a demand.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Extra {
    /// The domain's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The domain's version.
    #[serde(
        default,
        deserialize_with = "lenient::optional_digits",
        skip_serializing_if = "Option::is_none"
    )]
    pub version: Option<String>,
    /// Method of authorization; absent means `eip3009`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset_transfer_method: Option<String>,
}

/// A payment as clients send it, whatever the header's name: what says what was
/// accepted is version 2, all else has the shape of version 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PaymentPayload {
    /// With the accepted demand in full.
    V2(Box<v2::PaymentPayloadV2>),
    /// With scheme and network alone.
    V1(Box<v1::PaymentPayloadV1>),
}

impl PaymentPayload {
    /// The authorization and its signature.
    #[must_use]
    pub const fn payload(&self) -> &ExactPayload {
        match self {
            Self::V2(payment) => &payment.payload,
            Self::V1(payment) => &payment.payload,
        }
    }
}

/// A text that should hold a demand, a payment or an outcome cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HeaderError {
    /// Longer than any payment is.
    #[error("it is longer than {HEADER_BYTES_MAX} bytes")]
    TooLong,
    /// Neither JSON nor base64.
    #[error("it is neither JSON nor base64")]
    Base64(#[source] base64::DecodeError),
    /// Not the JSON that is expected.
    #[error("it does not hold the JSON of x402")]
    Json(#[source] serde_json::Error),
}

/// Reads the value of a payment header, or a body: JSON, or base64 of JSON.
///
/// Both alphabets of base64 are read, with and without padding, and so is a byte order mark.
///
/// # Errors
/// [`HeaderError`] when it is neither, or too long.
pub fn decode<T: DeserializeOwned>(text: &str) -> Result<T, HeaderError> {
    if text.len() > HEADER_BYTES_MAX {
        return Err(HeaderError::TooLong);
    }
    let text = without_mark(text).trim();
    if text.starts_with('{') {
        return serde_json::from_str(text).map_err(HeaderError::Json);
    }
    let standard: String = text.chars().map(standard_letter).collect();
    let bytes = ANY_PADDING.decode(standard).map_err(HeaderError::Base64)?;
    let json = bytes.strip_prefix(BYTE_ORDER_MARK.as_bytes()).unwrap_or(&bytes);
    serde_json::from_slice(json).map_err(HeaderError::Json)
}

/// A mark that some programs write before UTF-8. JSON has none.
const BYTE_ORDER_MARK: &str = "\u{feff}";

fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// The letter of standard base64 that a letter of base64url stands for.
const fn standard_letter(letter: char) -> char {
    match letter {
        '-' => '+',
        '_' => '/',
        other => other,
    }
}

/// The value of a payment header.
///
/// # Errors
/// When the value cannot be written as JSON.
pub fn encode<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    serde_json::to_vec(value).map(|json| STANDARD.encode(json))
}

/// An amount in base units: decimal digits and nothing else, below 2²⁵⁶.
#[must_use]
pub fn atomic(text: &str) -> Option<U256> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // silent-ok: a number beyond 256 bits is no amount.
    digits.then(|| U256::from_str_radix(text, 10).ok()).flatten()
}

#[cfg(test)]
mod tests;
