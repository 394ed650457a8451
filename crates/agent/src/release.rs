//! What the dead give back: the machines that they rent, which would cost what is left.
//!
//! They are stopped, with their files kept for as long as the cloud keeps them; the one that
//! commands run on is started by the next command. Must never delete one.

use automaton_client::{CloudClientError, MachineRef};
use automaton_core::trust::{Label, Labelled};

use crate::deps::AgentDeps;
use crate::error::AgentError;
use crate::survival;
use crate::treasury::CloudAccount;
use crate::turn;

/// What a machine is that costs something.
const RUNNING: &str = "running";

/// Has every machine of its account stopped, and tells the creator of each. Whether none is
/// left to stop; else it is to be tried again.
///
/// # Errors
/// When the creator cannot be told.
pub(crate) async fn release_machines(deps: &AgentDeps) -> Result<bool, AgentError> {
    let account = survival::payer(deps).and_then(|treasury| treasury.account());
    let Some(CloudAccount { cloud, key }) = account else { return Ok(true) };
    let rented = match cloud.machines(&key).await {
        Ok(rented) => rented.sandboxes,
        Err(error) => return Ok(is_final(&error)),
    };
    let mut is_done = true;
    for machine in rented.iter().filter(|machine| machine.status == RUNNING) {
        match cloud.stop_machine(MachineRef { key: &key, id: &machine.id }).await {
            Ok(()) => {
                let cause = format!("{} stopped at {}", machine.id, deps.ids.now());
                let text = format!(
                    "I am dead, and stopped my sandbox {} ({}): it costs nothing any more, and its \
                     files stay for as long as the cloud keeps them.",
                    machine.id, machine.name
                );
                let words = Labelled::new(Label::Own, "runtime", text);
                let message = deps.store.tell_creator(cause, words.clone()).await?;
                deps.emit(turn::sent((message, words)));
            }
            Err(error) => is_done &= is_final(&error),
        }
    }
    Ok(is_done)
}

/// Whether a cloud refuses it for good, such as one that stops no machines.
const fn is_final(error: &CloudClientError) -> bool {
    matches!(error, CloudClientError::Refused { status: 400..=407 | 410..=424, .. })
}
