//! What one automaton is given to live with.
//!
//! Every handle to the outside comes in here, so that a test or a simulator can
//! give others. Nothing in this crate may open a connection, a clock or a
//! source of chance by itself.

use std::fmt;
use std::sync::Arc;

use automaton_core::event::{Event, StampedEvent};
use automaton_core::faults::Faults;
use automaton_core::id::IdGenerator;
use automaton_core::tier::ModelTier;
use automaton_inference::{Provider, ProviderRegistry};
use automaton_policy::Judge;
use automaton_sandbox::{Launcher, Probe};
use automaton_store::Store;
use tokio::sync::broadcast;

use crate::treasury::Treasury;

/// The handles of one automaton.
#[derive(Clone)]
pub struct AgentDeps {
    /// Its tables.
    pub store: Store,
    /// The models that it thinks with.
    pub providers: ProviderRegistry,
    /// What starts commands in the sandbox.
    pub launcher: Arc<Launcher>,
    /// What the kernel gives the sandbox.
    pub probe: Probe,
    /// The clock and the maker of ids.
    pub ids: IdGenerator,
    /// Faults, inert outside rehearsals.
    pub faults: Arc<dyn Faults>,
    /// Where events go.
    pub events: Arc<dyn EventSink>,
    /// Who judges what it would do.
    pub judge: Judge,
    /// Its money. One without lives from a model that costs it nothing.
    pub treasury: Option<Arc<Treasury>>,
}

impl fmt::Debug for AgentDeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentDeps").finish_non_exhaustive()
    }
}

impl AgentDeps {
    /// Who thinks.
    pub(crate) fn provider_for(&self, tier: ModelTier) -> &dyn Provider {
        self.providers.provider_for(tier)
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

    /// What is emitted from now on, for somebody who watches; nothing where that is not
    /// offered. The queue is bounded: who is too slow for it is told so, and let go.
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
