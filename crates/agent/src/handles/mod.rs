//! What the tools see of the agent: one handle a concern, each over the store
//! or the sandbox. A handle must never offer more than its trait says.

mod background;
mod brought;
mod ground;
mod kept;
mod life;
mod machines;
mod mailbox;
mod memory;
mod money;
mod pulse;
mod rented;
mod survival;
mod tunnel;
mod workspace;

pub use self::workspace::{command_spec, describe as describe_limits};
use tokio::sync::watch;

use self::life::Life;
use self::machines::Machines;
use self::mailbox::Mailbox;
use self::memory::Memory;
use self::money::Money;
use self::pulse::Pulse;
use self::survival::Survival;
pub(crate) use self::workspace::Workspace;
use crate::deps::Deps;
use crate::error::AgentError;
use crate::settings::Settings;

/// The handles that every call gets.
pub(crate) struct Handles {
    pub(crate) workspace: Workspace,
    pub(crate) memory: Memory,
    pub(crate) mailbox: Mailbox,
    pub(crate) life: Life,
    pub(crate) treasury: Money,
    pub(crate) pulse: Pulse,
    pub(crate) survival: Survival,
    pub(crate) machines: Machines,
}

impl Handles {
    /// The handles of one automaton, which has so many tools.
    pub(crate) fn new(
        settings: &Settings,
        deps: &Deps,
        tools: usize,
        shutdown: watch::Receiver<bool>,
    ) -> Result<Self, AgentError> {
        let workspace = Workspace::open(settings, deps, shutdown)?;
        Ok(Self {
            machines: Machines::new(settings, deps, workspace.background()),
            workspace,
            memory: Memory::new(deps.store.clone()),
            mailbox: Mailbox::new(deps.clone()),
            life: Life::new(settings, deps, tools),
            treasury: Money::new(deps.treasury.clone()),
            pulse: Pulse::new(deps),
            survival: Survival::new(settings, deps),
        })
    }
}
