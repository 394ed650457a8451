//! Pure: reports transfers of ether as logs, as `eth_simulateV1` does on request.
//!
//! The logs have the address that ERC-7528 gives to ether. The log of a failed call must never
//! remain.

use alloy_primitives::{Address, Log, U256, address};
use alloy_sol_types::{SolEvent as _, sol};
use revm::Inspector;
use revm::context::{ContextTr, Journal, JournalTr as _};
use revm::interpreter::{CallInputs, CallOutcome, CallValue, CreateInputs, CreateOutcome};

/// The address of ether as a token, by ERC-7528.
const ETHER: Address = address!("0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE");

sol! {
    /// The event of ERC-20.
    event Transfer(address indexed from, address indexed to, uint256 value);
}

/// An inspector that logs each transfer of ether.
pub(super) struct EtherTracer;

fn transfer_log(from: Address, to: Address, value: U256) -> Log {
    Log { address: ETHER, data: Transfer { from, to, value }.encode_log_data() }
}

/// Removes the log of a failed call. Later logs are gone by then.
fn remove_failed_log<DB: revm::Database>(journal: &mut Journal<DB>, is_good: bool) {
    let logs = &mut journal.inner.logs;
    if !is_good && logs.last().is_some_and(|log| log.address == ETHER) {
        logs.pop();
    }
}

impl<DB, CTX> Inspector<CTX> for EtherTracer
where
    DB: revm::Database,
    CTX: ContextTr<Journal = Journal<DB>>,
{
    fn call(&mut self, context: &mut CTX, inputs: &mut CallInputs) -> Option<CallOutcome> {
        if let CallValue::Transfer(value) = inputs.value
            && !value.is_zero()
        {
            context.journal_mut().log(transfer_log(inputs.caller, inputs.target_address, value));
        }
        None
    }

    fn call_end(&mut self, context: &mut CTX, inputs: &CallInputs, outcome: &mut CallOutcome) {
        if matches!(inputs.value, CallValue::Transfer(value) if !value.is_zero()) {
            remove_failed_log(context.journal_mut(), outcome.result.is_ok());
        }
    }

    fn create_end(
        &mut self,
        context: &mut CTX,
        inputs: &CreateInputs,
        outcome: &mut CreateOutcome,
    ) {
        // The address is known only after the creation.
        if let Some(made) = outcome.address
            && outcome.result.is_ok()
            && !inputs.value().is_zero()
        {
            context.journal_mut().log(transfer_log(inputs.caller(), made, inputs.value()));
        }
    }
}
