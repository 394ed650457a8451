//! Pure: transactions as they come in, before any block has them.

use alloy_consensus::transaction::{Recovered, SignerRecoverable};
use alloy_consensus::{TxEnvelope, Typed2718};
use alloy_eips::eip2718::Decodable2718;
use alloy_primitives::Bytes;

use super::refusal::ChainRefusal;

/// A transaction that may go into a block.
#[derive(Debug, Clone)]
pub(crate) struct PendingTransaction {
    /// Its bytes by EIP-2718.
    pub(crate) raw: Bytes,
    /// The same, with who signed it.
    pub(crate) tx: Recovered<TxEnvelope>,
}

impl PendingTransaction {
    /// # Errors
    /// The bytes are no transaction, of a kind that is not taken, or unsigned.
    pub(crate) fn new(raw: Bytes) -> Result<Self, ChainRefusal> {
        let tx = recovered(&raw)?;
        Ok(Self { raw, tx })
    }
}

/// Decodes a transaction and finds who signed it.
///
/// # Errors
/// The bytes are no transaction, of a kind that is not taken, or unsigned.
pub(super) fn recovered(raw: &[u8]) -> Result<Recovered<TxEnvelope>, ChainRefusal> {
    let tx = TxEnvelope::decode_2718_exact(raw)
        .map_err(|error| ChainRefusal::Undecodable(error.to_string()))?;
    if tx.is_eip4844() {
        return Err(ChainRefusal::Unsupported(tx.ty()));
    }
    tx.try_into_recovered().map_err(|error| ChainRefusal::Undecodable(error.to_string()))
}
