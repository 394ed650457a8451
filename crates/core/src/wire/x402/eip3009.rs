//! Pure: EIP-3009, a transfer that its owner signs and anybody may submit.
//!
//! Source: <https://eips.ethereum.org/EIPS/eip-3009>, hashed as EIP-712 says.
//! The digest commits to the token's contract and chain, which must always come
//! from a table of our own and never from a peer.

use alloy_primitives::{Address, B256, Bytes, U256, b256, keccak256};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ChainId, USDC_NAME, USDC_VERSION, atomic};

/// keccak256 of `TransferWithAuthorization(address from,address to,uint256 value,
/// uint256 validAfter,uint256 validBefore,bytes32 nonce)`.
const TRANSFER_TYPEHASH: B256 =
    b256!("7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267");
/// keccak256 of `EIP712Domain(string name,string version,uint256 chainId,address
/// verifyingContract)`.
const DOMAIN_TYPEHASH: B256 =
    b256!("8b73c3c69bb8fe3d512ecc4cf759cc79239f7b179b0ffacaa9a75d522b39400f");

/// Authorization that the owner of tokens signs. All numbers are decimal text on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Authorization {
    /// The payer.
    #[serde(serialize_with = "checksummed")]
    #[schemars(with = "String")]
    pub from: Address,
    /// The payee.
    #[serde(serialize_with = "checksummed")]
    #[schemars(with = "String")]
    pub to: Address,
    /// Amount, in base units of the token.
    #[serde(with = "decimal")]
    #[schemars(with = "String")]
    pub value: U256,
    /// Valid after this second of the Unix epoch, exclusive.
    #[serde(with = "decimal")]
    #[schemars(with = "String")]
    pub valid_after: U256,
    /// Valid before this second of the Unix epoch, exclusive.
    #[serde(with = "decimal")]
    #[schemars(with = "String")]
    pub valid_before: U256,
    /// Unique for the payer and the token; used at most once.
    #[schemars(with = "String")]
    pub nonce: B256,
}

/// The payload of scheme `exact`: the authorization with its signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExactPayload {
    /// r, s and v of an account; a contract wallet's may be longer.
    #[schemars(with = "String")]
    pub signature: Bytes,
    /// The signed authorization.
    pub authorization: Authorization,
}

/// The EIP-712 domain of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenDomain {
    /// As the token names itself, which differs between deployments of USDC.
    pub name: String,
    /// The domain's version.
    pub version: String,
    /// The chain that the token is on.
    pub chain: ChainId,
    /// The token's contract.
    pub contract: Address,
}

impl TokenDomain {
    /// USDC at a contract, as it names itself on that chain.
    #[must_use]
    pub fn usdc(chain: ChainId, contract: Address) -> Self {
        let name = if chain == ChainId::BASE_SEPOLIA { "USDC" } else { USDC_NAME };
        Self { name: name.to_owned(), version: USDC_VERSION.to_owned(), chain, contract }
    }

    /// The domain separator.
    #[must_use]
    pub fn separator(&self) -> B256 {
        words(&[
            DOMAIN_TYPEHASH,
            keccak256(self.name.as_bytes()),
            keccak256(self.version.as_bytes()),
            U256::from(self.chain.0).into(),
            self.contract.into_word(),
        ])
    }

    /// The hash that the payer signs for a transfer of this token.
    #[must_use]
    pub fn transfer_digest(&self, transfer: &Authorization) -> B256 {
        let contents = words(&[
            TRANSFER_TYPEHASH,
            transfer.from.into_word(),
            transfer.to.into_word(),
            transfer.value.into(),
            transfer.valid_after.into(),
            transfer.valid_before.into(),
            transfer.nonce,
        ]);
        typed_digest(self.separator(), contents)
    }
}

/// The hash of typed data, EIP-712: `keccak256(0x1901 ‖ domain ‖ contents)`.
#[must_use]
pub fn typed_digest(separator: B256, contents: B256) -> B256 {
    keccak256([[0x19, 0x01].as_slice(), separator.as_slice(), contents.as_slice()].concat())
}

/// The hash of some words, one after the other.
pub(crate) fn words(words: &[B256]) -> B256 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.0).collect();
    keccak256(bytes)
}

fn checksummed<S: serde::Serializer>(address: &Address, to: S) -> Result<S::Ok, S::Error> {
    // The EIP-55 form is what `Display` gives.
    to.collect_str(address)
}

/// A number as decimal text. A whole number is read too.
mod decimal {
    use serde::de::Error;
    use serde::{Deserializer, Serializer};

    use super::{U256, atomic};
    use crate::wire::x402::lenient;

    pub(super) fn serialize<S: Serializer>(number: &U256, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(number)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<U256, D::Error> {
        let text = lenient::digits(from)?;
        atomic(&text).ok_or_else(|| D::Error::custom("expected decimal digits"))
    }
}
