//! Pure: errors as numbered by JSON-RPC 2.0 and EIP-1474.

use alloy_primitives::Bytes;
use revm::context::result::InvalidTransaction;
use serde::Serialize;

use crate::chain::ChainRefusal;

/// The error of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RpcError {
    code: i32,
    message: String,
    /// The data of a reverted call.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Bytes>,
}

/// The body is not JSON.
pub(crate) const PARSE: i32 = -32700;
/// The JSON is not a request.
pub(crate) const REQUEST: i32 = -32600;
/// The method does not exist.
pub(crate) const METHOD: i32 = -32601;
/// The parameters do not fit the method.
pub(crate) const PARAMS: i32 = -32602;
/// An internal failure.
pub(crate) const INTERNAL: i32 = -32603;

impl RpcError {
    /// Creates an error without data.
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Creates the error of `eth_simulateV1`, which has its own codes for calls that may not be
    /// made.
    pub(crate) fn of_simulation(refusal: ChainRefusal) -> Self {
        let code = match &refusal {
            ChainRefusal::Invalid(InvalidTransaction::NonceTooLow { .. }) => -38010,
            ChainRefusal::Invalid(InvalidTransaction::NonceTooHigh { .. }) => -38011,
            ChainRefusal::Invalid(InvalidTransaction::GasPriceLessThanBasefee) => -38012,
            ChainRefusal::Invalid(
                InvalidTransaction::CallGasCostMoreThanGasLimit { .. }
                | InvalidTransaction::GasFloorMoreThanGasLimit { .. },
            ) => -38013,
            ChainRefusal::Invalid(InvalidTransaction::LackOfFundForMaxFee { .. }) => -38014,
            ChainRefusal::Full => -38015,
            ChainRefusal::TooMany(..) => -38026,
            _ => return refusal.into(),
        };
        Self::new(code, refusal.to_string())
    }
}

impl From<ChainRefusal> for RpcError {
    fn from(refusal: ChainRefusal) -> Self {
        let code = match &refusal {
            ChainRefusal::Reverted(data) => {
                return Self { data: Some(data.clone()), ..Self::new(3, refusal.to_string()) };
            }
            ChainRefusal::UnknownBlock(_)
            | ChainRefusal::Invalid(
                InvalidTransaction::CallGasCostMoreThanGasLimit { .. }
                | InvalidTransaction::GasFloorMoreThanGasLimit { .. },
            ) => -32000,
            ChainRefusal::Invalid(_) | ChainRefusal::Full | ChainRefusal::FaucetEmpty => -32003,
            ChainRefusal::NotIncreasing("number", _) => -38020,
            ChainRefusal::NotIncreasing(..) => -38021,
            ChainRefusal::NotDeployed(..) => -32000,
            ChainRefusal::Overlay(_)
            | ChainRefusal::Undecodable(_)
            | ChainRefusal::Unsupported(_)
            | ChainRefusal::BeyondHead(..)
            | ChainRefusal::NoSnapshot(_)
            | ChainRefusal::NothingToFund(_) => PARAMS,
            ChainRefusal::StateGone(..) => -32001,
            ChainRefusal::TooMany(..) => -32005,
            ChainRefusal::Halted(_) | ChainRefusal::Broken(_) | ChainRefusal::Evm(_) => INTERNAL,
        };
        Self::new(code, refusal.to_string())
    }
}
