//! Handles of the tools, one for each concern, over the store or the sandbox. A handle must never
//! offer more than its trait says.

mod background;
mod disk_reserve;
mod file_backend;
mod machines;
mod mailbox;
mod memory;
mod models;
mod money;
mod rented_machine;
mod reserved_paths;
mod schedule;
mod status;
mod survival;
mod tunnel;
mod workspace;
mod workspace_snapshot;

pub(crate) use self::reserved_paths::SEALED;
pub use self::workspace::{command_spec, describe as describe_limits};
use std::sync::Arc;

use automaton_policy::guard::Guard;
use tokio::sync::watch;

use self::machines::RentedMachines;
use self::mailbox::Mailbox;
pub(crate) use self::memory::Memory;
pub use self::memory::add_meaning;
use self::models::ModelsView;
pub(crate) use self::models::may_take;
use self::money::OptionalTreasury;
use self::schedule::AgentSchedule;
use self::status::AgentStatusView;
use self::survival::Survival;
pub(crate) use self::workspace::Workspace;
use crate::deps::AgentDeps;
use crate::error::AgentError;
use crate::settings::Settings;
use crate::soul::SoulKeeper;
use crate::toolbox::AgentTools;

/// The handles that every call gets.
pub(crate) struct Handles {
    pub(crate) workspace: Workspace,
    pub(crate) memory: Arc<Memory>,
    pub(crate) soul: Arc<SoulKeeper>,
    pub(crate) mailbox: Mailbox,
    pub(crate) life: AgentStatusView,
    pub(crate) treasury: OptionalTreasury,
    pub(crate) pulse: AgentSchedule,
    pub(crate) survival: Survival,
    pub(crate) machines: RentedMachines,
    pub(crate) models: ModelsView,
}

impl Handles {
    /// The handles of one automaton, which has these tools.
    pub(crate) fn new(
        settings: &Settings,
        deps: &AgentDeps,
        tools: Arc<AgentTools>,
        guard: Arc<Guard>,
        shutdown: watch::Receiver<bool>,
    ) -> Result<Self, AgentError> {
        let workspace = Workspace::open(settings, deps, shutdown)?;
        Ok(Self {
            machines: RentedMachines::new(settings, deps, workspace.background()),
            workspace,
            memory: Arc::new(Memory::new(deps.store.clone(), deps.embedder.clone())),
            soul: Arc::new(SoulKeeper::new(settings, deps, guard)),
            mailbox: Mailbox::new(deps.clone()),
            life: AgentStatusView::new(settings, deps, tools),
            treasury: OptionalTreasury::new(deps.treasury.clone()),
            pulse: AgentSchedule::new(deps),
            survival: Survival::new(settings, deps),
            models: ModelsView::new(settings, deps),
        })
    }
}
