//! Days of one automaton's life, lived in seconds: the real agent, signer, cloud and
//! dev chain in one thread, over files, by one clock that goes on when nobody has
//! anything to do.
//!
//! ```text
//! life ──HTTP──▶ cloud ──HTTP──▶ scripted model
//!  │ │             │  └──socket──▶ signer of the gas account
//!  │ └──socket──▶ signer           │
//!  └────────────JSON-RPC────────▶ dev chain ◀── gifts
//! ```
//!
//! The runtime's time is paused and every clock reads it, so that a sleep of a week
//! takes as long as what happens in it. Whoever works on a thread of the runtime
//! holds the time; databases work where they are asked. What is missing are the
//! processes, and so the protection of the keys, which everybody knows.
//!
//! Nothing here may ever touch a home: it is given a folder of its own.

mod quiet;
mod town;

pub mod story;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alloy_primitives::{Address, U256};
use automaton_agent::treasury::{Treasury, TreasuryDeps};
use automaton_agent::{AgentDeps, AgentError, AgentRunOutcome, Budgets, EventSink, Toolbox, live};
use automaton_core::error::Classified;
use automaton_core::event::{Event, StampedEvent};
use automaton_core::faults::NoFaults;
use automaton_core::id::IdGenerator;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::time::{Span, Timestamp};
use automaton_core::trust::{Label, Labelled};
use automaton_core::wire::cloud::StatusReply;
use automaton_inference::routing::RoutingMatrix;
use automaton_inference::{
    BuiltInEmbedder, CompletionRequest, Message, NoTokenSink, Provider, ProviderRegistry,
};
use automaton_policy::PaymentLimits;
use automaton_sandbox::{Launcher, probe};
use automaton_store::{Hash, NewAutomaton, Reader, Store};
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};

use crate::settings::settings;
use crate::sim::SimError;
use crate::sim::time::{SimBootClock, SimWallClock, TrueTime};
use automaton_script::story::{Story, StoryError};
use automaton_testkit::entropy::SeededEntropy;
use automaton_testkit::world::WorldError;
use town::DaysTown;
pub use town::TownNeighbour;

/// Between two looks at whether something has happened.
const LOOK: Span = Span::from_secs(1);
/// Events that are shown when something did not happen.
const SHOWN_MAX: usize = 40;

/// Days that cannot be lived, or did not bring what they should.
#[derive(Debug, thiserror::Error, Classified)]
pub enum DaysError {
    /// The expected event did not happen.
    #[error("at {at}: waited for {what} in vain; what happened last:\n{}", events.join("\n"))]
    #[class(Internal)]
    InVain {
        /// The event.
        what: &'static str,
        /// Time of giving up.
        at: Timestamp,
        /// The last events.
        events: Vec<String>,
    },
    /// A part of the world could not be made.
    #[error(transparent)]
    #[class(kind = _0.kind())]
    Made(#[from] SimError),
    /// A story is none.
    #[error(transparent)]
    #[class(kind = _0.kind())]
    Story(#[from] StoryError),
    /// There is no place for its files.
    #[error(transparent)]
    #[class(kind = _0.kind())]
    World(#[from] WorldError),
}

impl DaysError {
    fn setup(what: &'static str, error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Made(SimError::setup(what, error))
    }
}

/// Receiver of each event as it happens.
pub type Listener = Box<dyn Fn(&StampedEvent) + Send + Sync>;

/// Prices of the model in microcents per million tokens, and the length of its answers.
#[derive(Debug, Clone, Copy)]
pub struct Tariff {
    /// A million tokens of the prompt.
    pub input: Microcents,
    /// A million tokens of the answer.
    pub output: Microcents,
    /// Tokens that an answer may have.
    pub answer_max: u32,
}

/// Settings of a life.
pub struct DaysConfig {
    /// A folder that is there, and empty.
    pub place: PathBuf,
    /// The program that starts commands in the sandbox.
    pub program: PathBuf,
    /// Start of the life.
    pub at: Timestamp,
    /// Script of its model.
    pub story: Story,
    /// Provider in its place, past the cloud.
    pub provider: Option<Arc<dyn Provider>>,
    /// Address of its creator.
    pub creator: Option<Address>,
    /// Prices.
    pub tariff: Tariff,
    /// Limits for losses and thinking.
    pub budgets: Budgets,
    /// Receiver of its events.
    pub listener: Listener,
}

/// Lives some days: the future may take any time, in seconds.
///
/// # Errors
/// There is no runtime to be had.
pub fn lived<T>(days: impl Future<Output = T>) -> Result<T, SimError> {
    let local = LocalSet::new();
    Ok(quiet::runtime()?.block_on(local.run_until(days)))
}

/// A life, and the town that it lives in.
pub struct SimulatedDays {
    home: PathBuf,
    time: TrueTime,
    town: DaysTown,
    store: Store,
    ids: IdGenerator,
    log: Arc<EventBuffer>,
    /// Events before this one have been waited for.
    seen: usize,
    end: watch::Sender<bool>,
    life: JoinSet<Result<AgentRunOutcome, AgentError>>,
}

/// Recorded events.
struct EventBuffer {
    events: Mutex<Vec<StampedEvent>>,
    listener: Listener,
}

impl EventSink for EventBuffer {
    fn emit(&self, event: StampedEvent) {
        (self.listener)(&event);
        if !matches!(event.event, Event::ThoughtDelta { .. }) {
            self.events().push(event);
        }
    }
}

impl EventBuffer {
    fn events(&self) -> MutexGuard<'_, Vec<StampedEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SimulatedDays {
    /// Builds the town, and has the automaton be born. Must be called in [`lived`].
    ///
    /// # Errors
    /// A part of it cannot be made.
    pub async fn begin(beginning: DaysConfig) -> Result<Self, DaysError> {
        let DaysConfig { place, program, at, story, provider, creator, tariff, budgets, listener } =
            beginning;
        let time = TrueTime::begin_at(at);
        let wall = SimWallClock::right(&time);
        let ids = IdGenerator::new(Arc::new(wall.clone()), Arc::new(SeededEntropy::new(1)));
        let log = Arc::new(EventBuffer { events: Mutex::default(), listener });
        let (town, money) = DaysTown::build(&place, &time, &wall, story, tariff).await?;
        let home = place.join("home");
        let failed = SimError::io("home");
        std::fs::create_dir_all(home.join("workspace")).map_err(failed)?;
        let faults = Arc::new(NoFaults);
        let store =
            Store::open_here(&home.join("state.db"), ids.clone(), faults.clone(), Box::new(|| ()));
        let store = store.map_err(|error| DaysError::setup("record", error))?;
        let mut settings = settings(&home, tariff.answer_max, budgets);
        settings.creator_address = creator.map(|address| address.to_string());
        let genesis_sha256 = Hash::of(settings.genesis.as_bytes());
        let constitution_sha256 = Hash::of(settings.constitution.as_bytes());
        let born =
            NewAutomaton { name: settings.name.clone(), genesis_sha256, constitution_sha256 };
        store.birth(born).await.map_err(|error| DaysError::setup("birth", error))?;
        let around = TreasuryDeps {
            ids: ids.clone(),
            boot: Arc::new(SimBootClock(time.clone())),
            faults: faults.clone(),
            events: Arc::<EventBuffer>::clone(&log),
        };
        let treasury = Treasury::new(store.clone(), money.payment_context, around);
        let treasury = treasury.with_limits(PaymentLimits::default());
        let treasury = treasury.map_err(|error| DaysError::setup("treasury", error))?;
        let matrix =
            RoutingMatrix::built_in().map_err(|error| DaysError::setup("router", error))?;
        let toolbox = Toolbox::built_in().map_err(|error| DaysError::setup("tools", error))?;
        let launcher = Launcher::new(program);
        let deps = AgentDeps {
            store: store.clone(),
            providers: ProviderRegistry::new(
                provider.unwrap_or(money.provider),
                "the cloud",
                matrix,
            ),
            embedder: Some(Arc::new(BuiltInEmbedder)),
            probe: probe(&launcher),
            launcher: Arc::new(launcher),
            ids: ids.clone(),
            started_at: ids.now(),
            faults,
            events: Arc::<EventBuffer>::clone(&log),
            judge: automaton_policy::Judge::default(),
            treasury: Some(Arc::new(treasury)),
            toolbox: Arc::new(toolbox),
        };
        let (end, shutdown) = watch::channel(false);
        let mut life = JoinSet::new();
        life.spawn_local(live(settings, deps, shutdown));
        Ok(Self { home, time, town, store, ids, log, seen: 0, end, life })
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.time.now()
    }

    /// The automaton's home.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Its wallet.
    #[must_use]
    pub const fn wallet(&self) -> Address {
        self.town.wallet
    }

    /// Its record, to look at.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn record(&self) -> Result<Reader, DaysError> {
        Reader::open(&self.home.join("state.db")).map_err(|error| DaysError::setup("record", error))
    }

    /// Everything that happened so far.
    #[must_use]
    pub fn events(&self) -> Vec<StampedEvent> {
        self.log.events().clone()
    }

    /// Returns the address of the cloud.
    #[must_use]
    pub fn cloud(&self) -> &str {
        self.town.cloud()
    }

    /// Gives its wallet USDC from the faucet.
    ///
    /// # Errors
    /// The chain gives none.
    pub async fn give(&self, amount: MicroUsdc) -> Result<(), DaysError> {
        let given = self.town.chain.fund(self.town.wallet, amount, U256::ZERO).await;
        let transaction = given.map_err(|error| DaysError::setup("gift", error))?.to_string();
        let address = self.town.wallet.to_string();
        self.emit(Event::WalletFunded { address, amount, transaction });
        Ok(())
    }

    /// Sends it a message of its creator.
    ///
    /// # Errors
    /// The record takes none.
    pub async fn send_message(&self, text: &str) -> Result<(), DaysError> {
        self.hear(Label::Creator, text).await
    }

    /// Sends it a message of somebody.
    ///
    /// # Errors
    /// The record takes none.
    pub async fn hear(&self, label: Label, text: &str) -> Result<(), DaysError> {
        let body = Labelled::new(label, label.name(), text);
        let message = self.store.receive(body.clone(), None).await;
        let message = message.map_err(|error| DaysError::setup("message", error))?;
        self.emit(Event::MessageReceived { message, body });
        Ok(())
    }

    fn emit(&self, event: Event) {
        self.log.emit(StampedEvent { at: self.ids.now(), event });
    }

    /// Has its model say something else from now on.
    pub fn retell(&self, story: Story) {
        self.town.model.replace_story(story);
    }

    /// Has somebody with a key that everybody knows open an account with the cloud.
    ///
    /// # Errors
    /// The cloud opens none.
    pub async fn neighbour(&self, key: [u8; 32]) -> Result<TownNeighbour, DaysError> {
        self.town.neighbour(key, &SimWallClock::right(&self.time)).await
    }

    /// Returns a wallet's credits and its USDC.
    ///
    /// # Errors
    /// One of them does not say.
    pub async fn has(&self, whose: &TownNeighbour) -> Result<(Microcents, MicroUsdc), DaysError> {
        let DaysTown { client, node, token, .. } = &self.town;
        let credits = client.balance(&whose.key).await;
        let credits = credits.map_err(|error| DaysError::setup("balance", error))?;
        let usdc = node.balance(*token, whose.address).await;
        let usdc = usdc.map_err(|error| DaysError::setup("balance", error))?;
        Ok((credits.balance_microcents.unwrap_or(Microcents::ZERO), usdc))
    }

    /// Returns the last status that the cloud received.
    ///
    /// # Errors
    /// The cloud does not say.
    pub async fn last_status(&self) -> Result<StatusReply, DaysError> {
        let DaysTown { client, key, wallet, .. } = &self.town;
        let told = client.status(key, *wallet).await;
        told.map_err(|error| DaysError::setup("status", error))
    }

    /// Asks its model in its name, as it would; what it would get, in words.
    pub async fn would_get(&self) -> String {
        let ask = CompletionRequest {
            messages: vec![Message::user("Is anybody there?").into()],
            tools: Arc::default(),
            left_out: Vec::new(),
            max_tokens: 16,
            seed: 1,
            temperature_milli: 0,
            name: None,
            silence: None,
        };
        match self.town.provider.complete(&ask, &NoTokenSink).await {
            Ok(_) => "an answer".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    /// Lets time pass.
    pub async fn pass(&self, span: Span) {
        tokio::time::sleep(span.to_std()).await;
    }

    /// Waits for the next event that passes, after those that were waited for before.
    ///
    /// # Errors
    /// [`DaysError::InVain`] when there is none within this span.
    pub async fn until(
        &mut self,
        what: &'static str,
        within: Span,
        wanted: impl Fn(&Event) -> bool,
    ) -> Result<StampedEvent, DaysError> {
        let end = self.now().after(within);
        loop {
            let found = {
                let events = self.log.events();
                let mut later = events.iter().enumerate().skip(self.seen);
                later.find(|(_, one)| wanted(&one.event)).map(|(at, one)| (at, one.clone()))
            };
            if let Some((at, found)) = found {
                self.seen = at + 1;
                return Ok(found);
            }
            if self.now() > end || self.life.try_join_next().is_some() {
                return Err(self.in_vain(what));
            }
            self.pass(LOOK).await;
        }
    }

    fn in_vain(&self, what: &'static str) -> DaysError {
        let events = self.log.events();
        let from = events.len().saturating_sub(SHOWN_MAX);
        let shown = |one: &StampedEvent| format!("  {} {:?}", one.at, one.event);
        let events = events.iter().skip(from).map(shown).collect();
        DaysError::InVain { what, at: self.now(), events }
    }

    /// Ends the life, as its supervisor does, and gives all that happened.
    ///
    /// # Errors
    /// It ended with one.
    pub async fn end(mut self) -> Result<Vec<StampedEvent>, DaysError> {
        self.end.send_replace(true);
        match self.life.join_next().await {
            Some(Ok(Ok(_))) => {}
            Some(Ok(Err(error))) => return Err(DaysError::setup("life", error)),
            Some(Err(error)) => return Err(DaysError::setup("life", error)),
            None => return Err(self.in_vain("the end of a life that had ended before")),
        }
        self.store.close().await.map_err(|error| DaysError::setup("record", error))?;
        let events = std::mem::take(&mut *self.log.events());
        Ok(events)
    }
}
