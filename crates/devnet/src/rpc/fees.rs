//! Pure: fee data for clients.

use alloy_eips::BlockNumberOrTag;
use alloy_rpc_types_eth::FeeHistory;

use crate::chain::{BASE_FEE, BLOCK_GAS, Chain, ChainRefusal};

/// The suggested tip, in wei for each unit of gas. There is no competition here. Other nodes
/// suggest this on an idle chain.
pub(crate) const TIP: u64 = 1_000_000_000;

/// The price of blob gas, in wei: the minimum, since no block has blobs.
pub(crate) const BLOB_FEE: u64 = 1;

/// The largest number of blocks in one answer.
const BLOCKS_MAX: u64 = 1_024;

/// Returns the fees of the last `count` blocks up to `newest`.
///
/// # Errors
/// Fails if there is no such block.
pub(crate) fn history(
    chain: &Chain,
    count: u64,
    newest: BlockNumberOrTag,
    percentiles: Option<&[f64]>,
) -> Result<FeeHistory, ChainRefusal> {
    let newest = chain.block(newest.into())?.header.number;
    let count = count.clamp(1, BLOCKS_MAX).min(newest.saturating_add(1));
    let oldest_block = newest - (count - 1);
    let mut history = FeeHistory { oldest_block, ..FeeHistory::default() };
    let mut rewards = Vec::new();
    for number in oldest_block..=newest {
        let block = chain.block(number.into())?;
        history.base_fee_per_gas.push(BASE_FEE.into());
        history.base_fee_per_blob_gas.push(BLOB_FEE.into());
        history.gas_used_ratio.push(share(block.header.gas_used));
        history.blob_gas_used_ratio.push(0.0);
        rewards.push(block.tips(percentiles.unwrap_or_default()));
    }
    // Both lists have one more entry, for the next block.
    history.base_fee_per_gas.push(BASE_FEE.into());
    history.base_fee_per_blob_gas.push(BLOB_FEE.into());
    history.reward = percentiles.map(|_| rewards);
    Ok(history)
}

/// Returns the used share of a block's gas, in the wire format.
#[expect(clippy::float_arithmetic, reason = "the format is a ratio in floating point; no money")]
fn share(gas_used: u64) -> f64 {
    // Gas in a block fits into 32 bits, so nothing is rounded before the division.
    let exact = |gas| f64::from(u32::try_from(gas).unwrap_or(u32::MAX));
    exact(gas_used) / exact(BLOCK_GAS)
}
