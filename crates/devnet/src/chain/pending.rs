//! Pure: received transactions that are in no block yet.

use alloy_consensus::transaction::{Recovered, SignerRecoverable};
use alloy_consensus::{TxEnvelope, Typed2718};
use alloy_eips::eip2718::Decodable2718;
use alloy_primitives::Bytes;

use super::refusal::ChainRefusal;

/// A transaction that may go into a block.
#[derive(Debug, Clone)]
pub(crate) struct PendingTransaction {
    /// The bytes by EIP-2718.
    pub(crate) raw: Bytes,
    /// The decoded transaction with its signer.
    pub(crate) tx: Recovered<TxEnvelope>,
}

impl PendingTransaction {
    /// Decodes a transaction.
    ///
    /// # Errors
    /// Fails if the bytes are not a signed transaction of a supported kind.
    pub(crate) fn new(raw: Bytes) -> Result<Self, ChainRefusal> {
        let tx = recover_transaction(&raw)?;
        Ok(Self { raw, tx })
    }
}

/// Decodes a transaction and recovers its signer.
///
/// # Errors
/// Fails if the bytes are not a signed transaction of a supported kind.
pub(super) fn recover_transaction(raw: &[u8]) -> Result<Recovered<TxEnvelope>, ChainRefusal> {
    let tx = TxEnvelope::decode_2718_exact(raw)
        .map_err(|error| ChainRefusal::Undecodable(error.to_string()))?;
    if tx.is_eip4844() {
        return Err(ChainRefusal::Unsupported(tx.ty()));
    }
    tx.try_into_recovered().map_err(|error| ChainRefusal::Undecodable(error.to_string()))
}
