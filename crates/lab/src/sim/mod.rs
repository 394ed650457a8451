//! Random histories over the real treasury, the real signer and the real cloud, on
//! a model of a chain, in one thread, from one seed.
//!
//! ```text
//!  acts and faults, drawn from the seed            true time, in leaps
//!         │                                              │ a clock each, right or wrong
//!         ▼                                              ▼
//!  treasury ──lines──▶ listener ──▶ signer     every process: a fuse, a disk,
//!     │ HTTP               │                   lives one after the other
//!     ▼                    ▼
//!  wires (lose, repeat,  all that was ever signed ──┐
//!     │    delay, lag)                              ▼
//!     ├──▶ cloud ──▶ settler ──gate──▶ chain ──▶ checker ◀── record, ledgers
//!     └──────────── JSON-RPC ─────────▶ (forks)
//! ```
//!
//! A process dies where its fuse blows: whoever arrives there unwinds, its files
//! are copied as the disk has them, and the next life begins with the copy. When
//! the faults stop, everything must come to its end, and then every book must say
//! the same (`check`). The runtime's time is paused and each database works where
//! it is asked, so a seed tells the same history each time; what two threads do
//! at once, the signer's and the rest, they do one after the other, too.
//!
//! Nothing here may ever touch a home: it makes its files itself, in memory where
//! the machine has such a place, and its key is known to everybody.

mod baseline;
mod chain;
mod check;
mod disk;
mod history;
mod life;
mod network;
pub(crate) mod rng;
mod settlement;
pub(crate) mod time;
mod world;

use std::fmt;
use std::io;

use alloy_primitives::Address;
use automaton_core::error::Classified;
use automaton_core::wire::x402::{ChainId, TokenDomain};
use tokio::runtime::{Builder, Runtime};

use automaton_testkit::world::{TempDir, WorldError};

pub use automaton_signer::rehearsal::PlantedDefect;

use baseline::SimBaseline;
pub(crate) use baseline::account;

/// The chain of every history, by its EIP-155 id: Base, where a block is not final
/// at once.
const CHAIN_ID: u64 = 8453;

/// The token of every history.
fn token() -> TokenDomain {
    TokenDomain::usdc(ChainId(CHAIN_ID), Address::repeat_byte(0xA5))
}

/// A history broke a promise, or could not be told.
#[derive(Debug, thiserror::Error, Classified)]
pub enum SimError {
    /// A promise was broken.
    #[error("the history of seed {seed} breaks a promise: {what}\n{}", trace.join("\n"))]
    #[class(Internal, hint = "`automaton drill money --seed {seed} --histories 1` tells it again.")]
    Broken {
        /// The seed that tells this history again.
        seed: u64,
        /// The broken promise.
        what: String,
        /// Earlier events, a line each.
        trace: Vec<String>,
    },
    /// A part of the simulation could not be made.
    #[error("cannot make the simulated {what}")]
    #[class(Internal)]
    Made {
        /// Which part.
        what: &'static str,
        /// Cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is no place for its files.
    #[error(transparent)]
    World(#[from] WorldError),
}

impl SimError {
    pub(crate) fn setup(
        what: &'static str,
        error: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::Made { what, source: Box::new(error) }
    }

    pub(crate) fn io(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::setup(what, error)
    }
}

/// Counts over histories.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SimStats {
    /// Histories.
    pub histories: u64,
    /// Payments that were written down.
    pub intents: u64,
    /// Histories that moved tokens or credits.
    pub settled: u64,
    /// Lives of processes that ended.
    pub deaths: u64,
    /// Forks of the chain.
    pub forks: u64,
    /// Requests that went over the wires.
    pub requests: u64,
}

impl SimStats {
    /// Adds what happened in others.
    pub fn add(&mut self, other: Self) {
        self.histories += other.histories;
        self.intents += other.intents;
        self.settled += other.settled;
        self.deaths += other.deaths;
        self.forks += other.forks;
        self.requests += other.requests;
    }
}

impl fmt::Display for SimStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { histories, intents, settled, deaths, forks, requests } = self;
        write!(
            f,
            "{histories} histories: {intents} payments begun, {settled} settled, {deaths} deaths, \
             {forks} forks, {requests} requests"
        )
    }
}

/// Tells histories. What is dear to make is made once.
pub struct Simulator {
    dir: TempDir,
    seedling: SimBaseline,
}

impl Simulator {
    /// A simulator with a directory of its own.
    ///
    /// # Errors
    /// [`SimError`], never `Broken`.
    pub fn new() -> Result<Self, SimError> {
        let dir = TempDir::in_memory()?;
        let seedling = runtime()?.block_on(SimBaseline::grow(dir.path()))?;
        Ok(Self { dir, seedling })
    }

    /// Tells the history of a seed, with a defect put in where that is wanted.
    ///
    /// # Errors
    /// [`SimError::Broken`] when it breaks a promise.
    pub fn run_seed(&self, seed: u64, plant: Option<PlantedDefect>) -> Result<SimStats, SimError> {
        let dir = self.dir.path().join(seed.to_string());
        let failed = SimError::io("disk");
        std::fs::create_dir(&dir).map_err(&failed)?;
        let told = runtime()?.block_on(history::run_history(&self.seedling, &dir, seed, plant));
        std::fs::remove_dir_all(&dir).map_err(&failed)?;
        told
    }
}

/// A runtime of one thread, in which time passes only when nothing else is to be done.
fn runtime() -> Result<Runtime, SimError> {
    let built = Builder::new_current_thread().enable_all().start_paused(true).build();
    built.map_err(SimError::io("runtime"))
}
