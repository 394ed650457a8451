//! Dependencies of one automaton.
//!
//! Every handle to the outside comes in here, so that a test or a simulator can
//! give others. Nothing in this crate may open a connection, a clock or a
//! source of chance by itself.

use std::fmt;
use std::sync::Arc;

use automaton_core::event::{Event, StampedEvent};
use automaton_core::faults::Faults;
use automaton_core::id::IdGenerator;
use automaton_core::model::InferenceTask;
use automaton_core::time::Timestamp;
use automaton_core::vitals::Vitals;
use automaton_core::wire::control::ModelStatus;
use automaton_inference::{
    Embedder, ModelIndex, ModelInfo, ProviderRegistry, RegisteredModel, Route, RouteQuery,
};
use automaton_policy::Judge;
use automaton_sandbox::{Launcher, Probe};
use automaton_store::Store;
use tokio::sync::broadcast;

use crate::toolbox::Toolbox;
use crate::treasury::Treasury;

/// The handles of one automaton.
#[derive(Clone)]
pub struct AgentDeps {
    /// Its tables.
    pub store: Store,
    /// The models that it thinks with.
    pub providers: ProviderRegistry,
    /// Source of vectors for memories, if there is one.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Starter of sandboxed commands.
    pub launcher: Arc<Launcher>,
    /// Capabilities of the kernel for the sandbox.
    pub probe: Probe,
    /// The clock and the maker of ids.
    pub ids: IdGenerator,
    /// Start of the process.
    pub started_at: Timestamp,
    /// Faults, inert outside rehearsals.
    pub faults: Arc<dyn Faults>,
    /// Receiver of events.
    pub events: Arc<dyn EventSink>,
    /// Judge of calls.
    pub judge: Judge,
    /// Its money. One without lives from a model that costs it nothing.
    pub treasury: Option<Arc<Treasury>>,
    /// Its tools. They may change while it runs.
    pub toolbox: Arc<Toolbox>,
}

impl fmt::Debug for AgentDeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentDeps").finish_non_exhaustive()
    }
}

impl AgentDeps {
    /// A model.
    pub(crate) fn model(&self, at: ModelIndex) -> ModelInfo {
        self.providers.get(at).provider.model().clone()
    }

    /// Which models may do a task with these means.
    pub(crate) fn route(&self, task: InferenceTask, vitals: &Vitals) -> Route {
        let is_broke = self.treasury.is_some() && vitals.is_broke();
        let query = RouteQuery { tier: vitals.effective_tier(), task, is_broke };
        self.providers.route(query, self.ids.now())
    }

    /// The model that thinks with these means: the usual one, where none can.
    pub(crate) fn thinker(&self, vitals: &Vitals) -> ModelIndex {
        self.route(InferenceTask::AgentTurn, vitals).models.first().copied().unwrap_or_default()
    }

    /// The models, with how each stands with these means.
    pub(crate) fn model_rows(&self, vitals: &Vitals) -> Vec<ModelStatus> {
        let thinks = self.thinker(vitals);
        let chosen = self.providers.chosen();
        let now = self.ids.now();
        let row = |(at, known): (ModelIndex, Arc<RegisteredModel>)| {
            let info = known.provider.model();
            ModelStatus {
                model: info.id.clone(),
                seller: known.seller.clone(),
                roles: known.roles.clone(),
                context_tokens: info.context_tokens,
                input_per_million: info.prices.input_per_million,
                output_per_million: info.prices.output_per_million,
                weak: info.weak,
                thinks: at == thinks,
                chosen: chosen.as_ref() == Some(&info.id),
                avoided: self.providers.is_avoided(at, now),
            }
        };
        self.providers.all().into_iter().map(row).collect()
    }

    /// Tells the world what happened, with the time.
    pub(crate) fn emit(&self, event: Event) {
        self.events.emit(StampedEvent { at: self.ids.now(), event });
    }
}

/// Takes events. Must not block for long and must not fail the turn.
pub trait EventSink: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: StampedEvent);

    /// Returns a feed of further events; `None` if there is none. The queue is bounded: a slow
    /// follower is told so, and disconnected.
    fn follow(&self) -> Option<broadcast::Receiver<Arc<StampedEvent>>> {
        None
    }
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvents;

impl EventSink for NoEvents {
    fn emit(&self, _event: StampedEvent) {}
}
