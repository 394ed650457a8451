//! Pure: applies a client's overrides to try a call. Nothing of it remains.

use std::convert::Infallible;

use alloy_primitives::{Address, U256};
use alloy_rpc_types_eth::BlockOverrides;
use alloy_rpc_types_eth::state::{AccountOverride, StateOverride};
use revm::DatabaseRef;
use revm::bytecode::Bytecode;
use revm::primitives::KECCAK_EMPTY;

use super::evm::{BlockEnvironment, TriedState};
use super::refusal::ChainRefusal;

/// Applies overrides to accounts.
///
/// # Errors
/// Fails if an override contradicts itself or is not supported.
pub(super) fn apply_state(
    state: &mut TriedState<'_>,
    overrides: &StateOverride,
) -> Result<(), ChainRefusal> {
    overrides.iter().try_for_each(|(address, change)| apply_account(state, *address, change))
}

fn apply_account(
    state: &mut TriedState<'_>,
    address: Address,
    change: &AccountOverride,
) -> Result<(), ChainRefusal> {
    let wrong = |what: String| Err(ChainRefusal::Overlay(format!("account {address}: {what}")));
    if change.move_precompile_to.is_some() {
        return wrong("movePrecompileToAddress is not supported here".to_owned());
    }
    let Ok(found) = state.basic_ref(address);
    let mut info = found.unwrap_or_default();
    info.balance = change.balance.unwrap_or(info.balance);
    info.nonce = change.nonce.unwrap_or(info.nonce);
    if let Some(code) = &change.code {
        let code = match Bytecode::new_raw_checked(code.clone()) {
            Ok(code) => code,
            Err(error) => return wrong(format!("its code cannot be used: {error}")),
        };
        info.code_hash = if code.is_empty() { KECCAK_EMPTY } else { code.hash_slow() };
        info.code = Some(code);
    }
    // Loaded first, so that its storage is still found.
    let Ok(account) = state.load_account(address);
    account.info.clone_from(&info);
    state.insert_account_info(address, info);
    match (&change.state, &change.state_diff) {
        (Some(_), Some(_)) => return wrong("it has both `state` and `stateDiff`".to_owned()),
        (Some(all), None) => {
            let slots = all.iter().map(|(slot, value)| ((*slot).into(), (*value).into()));
            let Ok(()) = state.replace_account_storage(address, slots.collect());
        }
        (None, Some(some)) => {
            for (slot, value) in some {
                let Ok(()) = state.insert_account_storage(address, (*slot).into(), (*value).into());
            }
        }
        (None, None) => {}
    }
    Ok(())
}

/// Applies overrides to the block.
///
/// # Errors
/// Fails if a number is too large for this chain.
pub(super) fn apply_block(
    setting: BlockEnvironment,
    overrides: &BlockOverrides,
) -> Result<BlockEnvironment, ChainRefusal> {
    let fits = |name: &str, value: Option<U256>, usual: u64| match value.map(u64::try_from) {
        None => Ok(usual),
        Some(Ok(value)) => Ok(value),
        Some(Err(_)) => Err(ChainRefusal::Overlay(format!("the block's {name} is too large"))),
    };
    Ok(BlockEnvironment {
        chain_id: setting.chain_id,
        number: fits("number", overrides.number, setting.number)?,
        time: overrides.time.unwrap_or(setting.time),
        random: overrides.random.unwrap_or(setting.random),
        beneficiary: overrides.coinbase.unwrap_or(setting.beneficiary),
        gas_limit: overrides.gas_limit.unwrap_or(setting.gas_limit),
        base_fee: fits("baseFeePerGas", overrides.base_fee, setting.base_fee)?,
    })
}

/// Returns the nonce of an account's next transaction.
pub(super) fn nonce_of<S: DatabaseRef<Error = Infallible>>(state: &S, address: Address) -> u64 {
    let Ok(account) = state.basic_ref(address);
    account.map_or(0, |account| account.nonce)
}
