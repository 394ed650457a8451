//! Information about the automaton itself.
//!
//! Only what it needs to plan its work: no paths of the host, no keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use automaton_core::id::RemoteMachineId;
use automaton_tools::context::{self, HandleFuture, Synopsis};

use super::memory::of_store;
use super::workspace::describe;
use crate::deps::AgentDeps;
use crate::settings::Settings;
use crate::toolbox::AgentTools;

/// The view of one automaton's life.
pub(crate) struct AgentStatusView {
    deps: AgentDeps,
    name: String,
    creator: String,
    tools: Arc<AgentTools>,
    sandbox: String,
    turns_left: AtomicU32,
}

impl AgentStatusView {
    pub(super) fn new(settings: &Settings, deps: &AgentDeps, tools: Arc<AgentTools>) -> Self {
        let creator = settings.creator_address.clone().unwrap_or_else(|| "creator".to_owned());
        let turns_left = AtomicU32::new(settings.limits.turns_per_wake);
        let machine = |machine: &RemoteMachineId| format!("the rented machine {machine}");
        let sandbox = settings.machine.as_ref().map_or_else(|| "a sandbox".to_owned(), machine);
        let deps = deps.clone();
        let name = settings.name.clone();
        Self { deps, name, creator, tools, sandbox, turns_left }
    }

    /// Notes how many turns of this wake are left.
    pub(crate) fn set_turns_left(&self, turns: u32) {
        // Relaxed: a number for display, with no other memory behind it.
        self.turns_left.store(turns, Ordering::Relaxed);
    }
}

impl context::StatusHandle for AgentStatusView {
    fn status_synopsis(&self) -> HandleFuture<'_, Synopsis> {
        Box::pin(async move {
            let life = self.deps.store.life().await.map_err(of_store)?;
            let inbox = self.deps.store.inbox_counts().await.map_err(of_store)?;
            let memories = self.deps.store.count_memories().await.map_err(of_store)?;
            let vitals = self.deps.store.vitals().await.map_err(of_store)?;
            let schedule = self.deps.store.schedule().await.map_err(of_store)?;
            let wallet = match &self.deps.treasury {
                Some(treasury) => {
                    let address = treasury.payable().address.to_string();
                    Some((address, treasury.balances().await))
                }
                None => None,
            };
            let model = self.deps.model(self.deps.thinker(&vitals));
            Ok(Synopsis {
                name: self.name.clone(),
                creator: self.creator.clone(),
                state: life.state,
                born_at: life.born_at,
                now: self.deps.ids.now(),
                turns: life.turns,
                turns_left: self.turns_left.load(Ordering::Relaxed),
                model: model.id.clone(),
                context_tokens: model.context_tokens,
                tools: self.tools.current().usual.len(),
                memories,
                unread: inbox.received,
                wallet,
                heartbeat: schedule.iter().filter(|row| row.task.enabled).count(),
                sandbox: self.sandbox.clone(),
                limits: describe(&self.deps.probe),
            })
        })
    }
}
