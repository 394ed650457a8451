//! The values of a chain's JSON-RPC interface, as they are on the wire.

use alloy_primitives::{Address, B256, Bytes, U256};
use automaton_core::time::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number in hexadecimal after `0x`. Nothing else is read as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity<T = u64>(pub T);

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Quantity(number) = Quantity::<U256>::deserialize(from)?;
        u64::try_from(number)
            .map(Self)
            .map_err(|_| D::Error::custom(format!("the number {number:#x} is too large")))
    }
}

impl<'de> Deserialize<'de> for Quantity<U256> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let no_number = || D::Error::custom(format!("'{text}' is no number"));
        let digits = text.strip_prefix("0x").ok_or_else(no_number)?;
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(no_number());
        }
        U256::from_str_radix(digits, 16).map(Self).map_err(|_| no_number())
    }
}

/// A block by its place in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockTag {
    /// The newest block.
    Latest,
    /// The block with this number.
    Number(u64),
}

impl Serialize for BlockTag {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Latest => to.serialize_str("latest"),
            Self::Number(number) => to.serialize_str(&format!("{number:#x}")),
        }
    }
}

/// A block by its hash, by EIP-1898. A node that does not have the block, or has another one in
/// its place by now, refuses. Some nodes do not know this form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockHash {
    block_hash: B256,
    require_canonical: bool,
}

impl BlockHash {
    /// Names a block that has to be part of the chain.
    #[must_use]
    pub const fn canonical(block_hash: B256) -> Self {
        Self { block_hash, require_canonical: true }
    }
}

/// The header of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(from = "WireHeader")]
pub struct BlockHeader {
    /// Its number; pending blocks have none.
    pub number: Option<u64>,
    /// Its hash; pending blocks have none.
    pub hash: Option<B256>,
    /// Its time, which no later block is before.
    pub time: Option<Timestamp>,
    /// The least price of a unit of gas in it, in wei.
    pub base_fee: Option<U256>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireHeader {
    number: Option<Quantity>,
    hash: Option<B256>,
    timestamp: Option<Seconds>,
    base_fee_per_gas: Option<Quantity<U256>>,
}

impl From<WireHeader> for BlockHeader {
    fn from(header: WireHeader) -> Self {
        Self {
            number: header.number.map(|number| number.0),
            hash: header.hash,
            time: header.timestamp.map(|seconds| seconds.0),
            base_fee: header.base_fee_per_gas.map(|fee| fee.0),
        }
    }
}

/// A time in seconds. A time beyond any date is refused, since it would end every deadline.
struct Seconds(Timestamp);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Quantity(seconds) = Quantity::<u64>::deserialize(from)?;
        let millis = i64::try_from(seconds).ok().and_then(|seconds| seconds.checked_mul(1000));
        let no_time = || D::Error::custom(format!("{seconds} seconds is no time"));
        millis.map(Timestamp::from_millis).map(Self).ok_or_else(no_time)
    }
}

/// A call of a contract, or the simulation of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContractCall {
    /// The account that calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Address>,
    /// The contract.
    pub to: Address,
    /// The function's selector and its arguments.
    pub data: Bytes,
}

impl ContractCall {
    /// Creates a call by nobody in particular.
    #[must_use]
    pub fn new(to: Address, data: impl Into<Bytes>) -> Self {
        Self { from: None, to, data: data.into() }
    }

    /// Names the account that calls.
    #[must_use]
    pub fn by(self, from: Address) -> Self {
        Self { from: Some(from), ..self }
    }
}

/// A selection of logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogFilter {
    /// The contract that wrote them.
    pub address: Address,
    /// The first block.
    pub from_block: BlockTag,
    /// The first topics, beginning with the event's signature.
    pub topics: Vec<B256>,
}

/// A log of a contract.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Log {
    /// The contract that wrote it.
    pub address: Address,
    /// The event's signature and its indexed values.
    pub topics: Vec<B256>,
    /// The event's other values.
    pub data: Bytes,
    /// The transaction.
    pub transaction_hash: B256,
    /// The place in the block.
    #[serde(deserialize_with = "read_number")]
    pub log_index: u64,
}

/// The receipt of a transaction in a block.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The transaction did its work and was not reverted.
    #[serde(rename = "status", deserialize_with = "read_status")]
    pub succeeded: bool,
    /// The number of the block.
    #[serde(deserialize_with = "read_number")]
    pub block_number: u64,
    /// The logs of the transaction.
    pub logs: Vec<Log>,
}

fn read_number<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Quantity::<u64>::deserialize(from).map(|number| number.0)
}

fn read_status<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Quantity::<u64>::deserialize(from).map(|status| status.0 == 1)
}
