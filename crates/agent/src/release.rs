//! Release of rented machines by a dead automaton, which would use up its last credits.
//!
//! They are stopped, with their files kept for as long as the cloud keeps them; the one that
//! commands run on is started by the next command. Must never delete one.

use automaton_client::{CloudClientError, MachineRef};
use automaton_core::trust::{Label, Labelled};
use automaton_store::MachineRelease;

use crate::deps::AgentDeps;
use crate::error::AgentError;
use crate::survival;
use crate::treasury::CloudAccount;
use crate::turn;

/// State of a machine that costs something.
const RUNNING: &str = "running";

/// Has every machine of its account stopped, and tells the creator of each. Whether none is
/// left to stop; else it is to be tried again.
///
/// # Errors
/// When the record cannot be read or written.
pub(crate) async fn release_machines(deps: &AgentDeps) -> Result<bool, AgentError> {
    let account = survival::payer(deps).and_then(|treasury| treasury.account());
    let Some(CloudAccount { cloud, key }) = account else { return Ok(true) };
    let rented = match cloud.machines(&key).await {
        Ok(rented) => rented.sandboxes,
        Err(error) => return Ok(is_final(&error)),
    };
    let mut is_done = true;
    let mut running = Vec::new();
    for machine in rented.iter().filter(|machine| machine.status == RUNNING) {
        deps.store.begin_release(machine.id.as_str(), &machine.name).await?;
        if let Err(error) = cloud.stop_machine(MachineRef { key: &key, id: &machine.id }).await {
            is_done &= is_final(&error);
            running.push(machine.id.as_str());
        }
    }
    for release in deps.store.releases().await? {
        if !running.contains(&release.machine.as_str()) {
            notify_creator(deps, release).await?;
        } else if is_done {
            deps.store.end_release(release, None).await?;
        }
    }
    Ok(is_done)
}

/// Tells the creator of machines that were stopped before a crash, where it lives again by now.
///
/// # Errors
/// When the record cannot be read or written.
pub(crate) async fn tell_of_released(deps: &AgentDeps) -> Result<(), AgentError> {
    let releases = deps.store.releases().await?;
    let account = survival::payer(deps).and_then(|treasury| treasury.account());
    let Some(CloudAccount { cloud, key }) = account.filter(|_| !releases.is_empty()) else {
        return Ok(());
    };
    // silent-ok: whoever cannot ask now asks at the next start, or once it is dead again.
    let Ok(rented) = cloud.machines(&key).await else { return Ok(()) };
    for release in releases {
        let is_it = |id: &str, status: &str| id == release.machine && status == RUNNING;
        if !rented.sandboxes.iter().any(|machine| is_it(machine.id.as_str(), &machine.status)) {
            notify_creator(deps, release).await?;
        }
    }
    Ok(())
}

/// Tells the creator of a machine that was stopped, once.
async fn notify_creator(deps: &AgentDeps, release: MachineRelease) -> Result<(), AgentError> {
    let text = format!(
        "I died, and stopped my sandbox {} ({}): it costs nothing any more, and its files stay \
         for as long as the cloud keeps them.",
        release.machine, release.name
    );
    let words = Labelled::new(Label::Own, "runtime", text);
    if let Some(message) = deps.store.end_release(release, Some(words.clone())).await? {
        deps.emit(turn::sent((message, words)));
    }
    Ok(())
}

/// Returns true if a cloud refuses for good, such as one that cannot stop machines.
const fn is_final(error: &CloudClientError) -> bool {
    matches!(error, CloudClientError::Refused { status: 400..=407 | 410..=424, .. })
}
