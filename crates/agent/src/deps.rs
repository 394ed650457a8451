//! What one automaton is given to live with.
//!
//! Every handle to the outside comes in here, so that a test or a simulator can
//! give others. Nothing in this crate may open a connection, a clock or a
//! source of chance by itself.

use std::fmt;
use std::sync::Arc;

use automaton_core::event::{Event, Stamped};
use automaton_core::faults::Faults;
use automaton_core::id::Mint;
use automaton_inference::Provider;
use automaton_sandbox::{Launcher, Probe};
use automaton_store::Store;

use crate::treasury::Treasury;

/// The handles of one automaton.
#[derive(Clone)]
pub struct Deps {
    /// Its tables.
    pub store: Store,
    /// The model that it thinks with.
    pub provider: Arc<dyn Provider>,
    /// What starts commands in the sandbox.
    pub launcher: Arc<Launcher>,
    /// What the kernel gives the sandbox.
    pub probe: Probe,
    /// The clock and the maker of ids.
    pub mint: Mint,
    /// Faults, inert outside rehearsals.
    pub faults: Arc<dyn Faults>,
    /// Where events go.
    pub events: Arc<dyn EventSink>,
    /// Its money. One without lives from a model that costs it nothing.
    pub treasury: Option<Arc<Treasury>>,
}

impl fmt::Debug for Deps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deps").finish_non_exhaustive()
    }
}

impl Deps {
    /// Tells the world what happened, with the time.
    pub(crate) fn emit(&self, event: Event) {
        self.events.emit(Stamped { at: self.mint.now(), event });
    }
}

/// Takes events. Must not block for long and must not fail the turn.
pub trait EventSink: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: Stamped);
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvents;

impl EventSink for NoEvents {
    fn emit(&self, _event: Stamped) {}
}
