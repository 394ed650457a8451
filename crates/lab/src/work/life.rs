//! A life in which a task is done, and what came of it.
//!
//! The clock is moved by hand: a second for each answer, over each rest that the limits
//! impose, and over the days between two messages of the creator. Whoever sleeps until
//! something happens has ended its work.

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use automaton_agent::{
    AgentDeps, AgentError, AgentLimits, Budgets, EventSink, Settings, Toolbox, UnattendedBudget,
    live,
};
use automaton_core::error::Classified;
use automaton_core::event::{Event, StampedEvent};
use automaton_core::faults::NoFaults;
use automaton_core::id::IdGenerator;
use automaton_core::inference_budget::InferenceCeilings;
use automaton_core::money::Microcents;
use automaton_core::record::StopReason;
use automaton_core::time::{Clock as _, DAY, Span, Timestamp};
use automaton_core::trust::{Label, Labelled};
use automaton_inference::cost::{TokenCounts, price};
use automaton_inference::providers::http::{ApiAuth, Endpoint, HttpProvider};
use automaton_inference::routing::RoutingMatrix;
use automaton_inference::{
    BuiltInEmbedder, ModelInfo, ModelPrices, Provider, ProviderRegistry, catalogue,
};
use automaton_net::{HttpClient, HttpClientConfig};
use automaton_policy::Judge;
use automaton_sandbox::{Launcher, Probe, probe};
use automaton_store::{Hash, NewAutomaton, Reader, Store};
use serde::Serialize;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::serve::{ServerStats, WorkServer};
use super::solver;
use super::tasks::{ScriptTiming, WorkCase, WorkExpectation, WorkTask};
use super::view::RequestView;
use automaton_testkit::clock::FakeClock;
use automaton_testkit::entropy::SeededEntropy;
use automaton_testkit::world::TempDir;

/// The model whose prices, dialect and limits hold where no other is named.
pub const USUAL_MODEL: &str = "gpt-5.2";
/// Answers that a task may take, and how long it may take on a real clock.
const ANSWERS_MAX: u64 = 300;
const TIME_MAX: Duration = Duration::from_secs(60);
/// Daily ceiling for model calls, in cents: the only limit that the creator sets.
const DAILY_CENTS: i64 = 2000;
/// The envelope that holds where nobody sets one.
const ENVELOPE: UnattendedBudget =
    UnattendedBudget { answers: Some(30), cost: Some(Microcents::new(25 * Microcents::PER_CENT)) };
/// Time that the creator waits in all for a resting automaton.
const PATIENCE: Span = Span::from_secs(30 * 60);
/// Interval of checks, and the time for which a message may wait for a sleeping automaton.
const LOOK: Duration = Duration::from_millis(5);
const LOOK_SPAN: Span = Span::from_millis(5);
const LOOKS_MAX: u32 = 200;
/// Messages to the creator that are looked at.
const SENT_MAX: u32 = 1000;
/// Start of the lives: a Monday.
const BEGINS: Timestamp = Timestamp::from_millis(1_767_603_600_000);

/// Host of a life's commands.
#[derive(Clone)]
pub struct CommandHost {
    launcher: Arc<Launcher>,
    probe: Probe,
}

impl CommandHost {
    /// This machine, with the program that starts commands in the sandbox.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        let launcher = Launcher::new(program);
        let probe = probe(&launcher);
        Self { launcher: Arc::new(launcher), probe }
    }
}

/// Result of a task at a window.
#[derive(Debug, Clone, Serialize)]
pub struct WorkMeasurement {
    /// Its name.
    pub task: &'static str,
    /// The model whose prices hold.
    pub model: String,
    /// The model's window, in tokens.
    pub window: u32,
    /// True if all expected results are there.
    pub solved: bool,
    /// Turns that were committed.
    pub turns: u64,
    /// Wakes that they were in.
    pub wakes: u64,
    /// Tokens of all requests.
    pub prompt_tokens: u64,
    /// Those of them that a server's cache would have had.
    pub cached_tokens: u64,
    /// Tokens of all answers.
    pub completion_tokens: u64,
    /// The price of all these tokens.
    pub cost: Microcents,
    /// Requests that were longer than the window.
    pub overruns: u64,
    /// Seconds of rest that a limit imposed.
    pub rested_s: i64,
    /// Facts that the model needed and did not see.
    pub missing: Option<String>,
    /// The first thing that must have come of it and is not there.
    pub lacks: Option<String>,
    /// Reason for the end of its last wake.
    pub ended: Option<StopReason>,
    /// Duration of all of it, in milliseconds.
    pub took_ms: u64,
}

/// A life that cannot be led at all.
#[derive(Debug, thiserror::Error, Classified)]
pub enum WorkError {
    /// A part of its world cannot be made.
    #[error("cannot make the {what} of a life that works")]
    #[class(Internal)]
    Made {
        /// Which.
        what: &'static str,
        /// Cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It broke down.
    #[error(transparent)]
    #[class(kind = _0.kind())]
    Life(#[from] AgentError),
}

impl WorkError {
    fn setup<E: std::error::Error + Send + Sync + 'static>(
        what: &'static str,
    ) -> impl FnOnce(E) -> Self {
        move |error| Self::Made { what, source: Box::new(error) }
    }
}

/// Observations of a life from outside.
struct WorkMonitor {
    clock: FakeClock,
    seen: Mutex<WorkObservation>,
    news: Notify,
}

#[derive(Default)]
struct WorkObservation {
    turns: u64,
    wakes: u64,
    /// Current sleep with its end and reason.
    sleep: Option<(Option<Timestamp>, StopReason)>,
    ended: Option<StopReason>,
}

impl EventSink for WorkMonitor {
    fn emit(&self, event: StampedEvent) {
        let mut seen = self.observation();
        match event.event {
            Event::TurnCommitted { .. } => seen.turns += 1,
            Event::WakeStarted { .. } => (seen.wakes, seen.sleep) = (seen.wakes + 1, None),
            Event::WakeEnded { reason, .. } => seen.ended = Some(reason),
            Event::SleepStarted { until, reason, .. } => seen.sleep = Some((until, reason)),
            Event::HibernationStarted { .. } => seen.sleep = Some((None, StopReason::StopLoss)),
            _ => return,
        }
        drop(seen);
        self.news.notify_one();
    }
}

impl WorkMonitor {
    fn observation(&self) -> std::sync::MutexGuard<'_, WorkObservation> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Display of memories to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkMemory {
    /// As it is.
    Shown,
    /// Nothing of it, to see what it is good for.
    Hidden,
}

/// Under which conditions a task is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkConditions<'a> {
    /// The model whose prices, dialect and limits hold.
    pub model: &'a str,
    /// Its window, in tokens.
    pub window: u32,
    /// Display of memories to the model.
    pub memory: WorkMemory,
    /// The limits of the life.
    pub limits: AgentLimits,
    /// Limits for thinking.
    pub budgets: Budgets,
}

/// Does a task under these conditions.
///
/// # Errors
/// When no life can be led here. A task that is not solved is no error.
pub async fn measure(
    task: &WorkTask,
    conditions: WorkConditions<'_>,
    machine: &CommandHost,
) -> Result<WorkMeasurement, WorkError> {
    let WorkConditions { model, window, limits, budgets, .. } = conditions;
    let began = Instant::now();
    let case = (task.case)();
    let place = TempDir::in_memory().map_err(WorkError::setup("place"))?;
    let home = place.path();
    furnish(home, &case)?;
    let clock = FakeClock::at(BEGINS);
    let ids = IdGenerator::new(Arc::new(clock.clone()), Arc::new(SeededEntropy::new(1)));
    let store = open_record(home, &ids).await?;
    let answers = Arc::new(AtomicU64::new(0));
    let watch =
        Arc::new(WorkMonitor { clock: clock.clone(), seen: Mutex::default(), news: Notify::new() });
    let server = serve(task, conditions, &watch, &answers).await?;
    let info = model_with(model, window)?;
    let prices = info.prices;
    let deps = AgentDeps {
        store: store.clone(),
        providers: ProviderRegistry::new(
            provider(&server, info, &clock)?,
            "the server",
            RoutingMatrix::built_in().map_err(WorkError::setup("router"))?,
        ),
        embedder: Some(Arc::new(BuiltInEmbedder)),
        launcher: Arc::clone(&machine.launcher),
        probe: machine.probe.clone(),
        started_at: ids.now(),
        ids,
        faults: Arc::new(NoFaults),
        events: Arc::clone(&watch) as Arc<dyn EventSink>,
        judge: Judge::default(),
        treasury: None,
        toolbox: Arc::new(Toolbox::built_in().map_err(WorkError::setup("tools"))?),
    };
    let script = CreatorScript::new(&store, &watch, &answers);
    let rested = lead(settings(home, limits, budgets), deps, script, &case).await?;
    store.close().await.map_err(WorkError::setup("record"))?;
    let stats = server.stats();
    let cost = cost_of(&prices, &stats)?;
    let ServerStats { prompt_tokens, cached_tokens, completion_tokens, overruns, missing, .. } =
        stats;
    let lacks = lacks(home, &case)?;
    let seen = watch.observation();
    Ok(WorkMeasurement {
        task: task.name,
        model: model.to_owned(),
        window,
        solved: lacks.is_none(),
        turns: seen.turns,
        wakes: seen.wakes,
        prompt_tokens,
        cached_tokens,
        completion_tokens,
        cost,
        overruns,
        rested_s: rested.as_millis() / 1000,
        missing: missing.into_iter().next_back(),
        lacks,
        ended: seen.ended,
        took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

/// Opens the record of an automaton that was just born.
async fn open_record(home: &Path, ids: &IdGenerator) -> Result<Store, WorkError> {
    let store = Store::open(&home.join("state.db"), ids.clone(), Arc::new(NoFaults))
        .map_err(WorkError::setup("record"))?;
    store.birth(newborn()).await.map_err(WorkError::setup("record"))?;
    Ok(store)
}

/// A model of the catalogue, with a window of this many tokens.
fn model_with(name: &str, window: u32) -> Result<ModelInfo, WorkError> {
    let info = catalogue::model(name).map_err(WorkError::setup("model"))?;
    Ok(ModelInfo { context_tokens: window, ..info })
}

/// The price of everything that a server has read and said.
fn cost_of(prices: &ModelPrices, stats: &ServerStats) -> Result<Microcents, WorkError> {
    let count = |tokens: u64| u32::try_from(tokens).unwrap_or(u32::MAX);
    let tokens = TokenCounts {
        prompt: count(stats.prompt_tokens),
        cached: count(stats.cached_tokens),
        cache_write: 0,
        completion: count(stats.completion_tokens),
    };
    price(prices, tokens).map_err(WorkError::setup("price"))
}

fn newborn() -> NewAutomaton {
    NewAutomaton {
        name: "Ada".to_owned(),
        genesis_sha256: Hash::of(b"genesis"),
        constitution_sha256: Hash::of(b"laws"),
    }
}

/// Lives until the script is over; how long it rested.
async fn lead(
    settings: Settings,
    deps: AgentDeps,
    mut script: CreatorScript<'_>,
    case: &WorkCase,
) -> Result<Span, WorkError> {
    let (end, shutdown) = watch::channel(false);
    // The first words are there before it is born.
    script.say_what_is_due(case).await?;
    let mut life = pin!(live(settings, deps, shutdown));
    let over = {
        let mut telling = pin!(tokio::time::timeout(TIME_MAX, script.go(case)));
        tokio::select! {
            biased;
            // A life ends by itself only when it breaks down or is done for.
            ended = &mut life => { ended?; true }
            // What takes too long is judged by what is there.
            told = &mut telling => { told.unwrap_or(Ok(()))?; false }
        }
    };
    end.send_replace(true);
    if !over {
        life.await?;
    }
    Ok(script.rested)
}

/// The creator, who says what a case has them say.
struct CreatorScript<'a> {
    store: &'a Store,
    watch: &'a WorkMonitor,
    answers: &'a AtomicU64,
    /// Messages so far.
    said: usize,
    rested: Span,
}

impl<'a> CreatorScript<'a> {
    /// A creator who has said nothing yet.
    const fn new(store: &'a Store, watch: &'a WorkMonitor, answers: &'a AtomicU64) -> Self {
        Self { store, watch, answers, said: 0, rested: Span::ZERO }
    }

    async fn send(&mut self, words: &str) -> Result<(), WorkError> {
        let words = Labelled::new(Label::Creator, "creator", words);
        self.store.receive(words, None).await.map_err(WorkError::setup("message"))?;
        self.said += 1;
        Ok(())
    }

    /// Says what need not wait for a sleep.
    async fn say_what_is_due(&mut self, case: &WorkCase) -> Result<(), WorkError> {
        while let Some((when, words)) = case.script.get(self.said) {
            let answers = self.answers.load(Ordering::Relaxed);
            match when {
                ScriptTiming::Start => {}
                ScriptTiming::Turn(turn) if answers >= *turn => {}
                ScriptTiming::Turn(_) | ScriptTiming::Asleep { .. } => break,
            }
            self.send(words).await?;
        }
        Ok(())
    }

    /// Says everything in its time, and waits for what comes of it.
    async fn go(&mut self, case: &WorkCase) -> Result<(), WorkError> {
        let mut looks = 0;
        let clock = &self.watch.clock;
        while self.answers.load(Ordering::Relaxed) < ANSWERS_MAX {
            self.say_what_is_due(case).await?;
            let sleep = self.watch.observation().sleep;
            match sleep {
                None => {}
                // A limit says that it rests.
                Some((Some(until), reason)) if reason != StopReason::Asked => {
                    let rest = until.since(clock.now());
                    let rested = Span::from_millis(self.rested.as_millis() + rest.as_millis());
                    if rested > PATIENCE {
                        break;
                    }
                    self.rested = rested;
                    clock.set(until.max(clock.now()));
                }
                Some(_) => {
                    let waiting = self.store.messages_waiting(None).await;
                    let waiting = waiting.map_err(WorkError::setup("record"))? > 0;
                    looks += 1;
                    match case.script.get(self.said) {
                        _ if waiting && looks < LOOKS_MAX => {}
                        None => break,
                        Some((when, words)) => {
                            if let ScriptTiming::Asleep { days } = when {
                                clock.step(Span::from_millis(DAY.as_millis() * days));
                            }
                            (looks, self.watch.observation().sleep) = (0, None);
                            self.send(words).await?;
                        }
                    }
                }
            }
            // Both arms are cancel-safe.
            tokio::select! {
                () = self.watch.news.notified() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
        Ok(())
    }
}

/// The model's server, whose answers take a second each.
async fn serve(
    task: &WorkTask,
    conditions: WorkConditions<'_>,
    watch: &Arc<WorkMonitor>,
    answers: &Arc<AtomicU64>,
) -> Result<WorkServer, WorkError> {
    let WorkConditions { model, window, memory, .. } = conditions;
    let solver = task.solver;
    let watch = Arc::clone(watch);
    let answers = Arc::clone(answers);
    let think = move |request: &automaton_core::wire::chat::ChatRequest| {
        answers.fetch_add(1, Ordering::Relaxed);
        watch.clock.step(Span::from_secs(1));
        watch.news.notify_one();
        let view = match memory {
            WorkMemory::Shown => RequestView::from_request(request),
            WorkMemory::Hidden => RequestView::from_request(request).without_memory(),
        };
        solver::answer(&view, solver)
    };
    WorkServer::start(model, window, Box::new(think)).await.map_err(WorkError::setup("server"))
}

fn provider(
    server: &WorkServer,
    info: ModelInfo,
    clock: &FakeClock,
) -> Result<Arc<dyn Provider>, WorkError> {
    let origin = server.origin().parse().map_err(WorkError::setup("address"))?;
    let config =
        HttpClientConfig { allow_private_origins: vec![origin], ..HttpClientConfig::default() };
    let client = HttpClient::new(config).map_err(WorkError::setup("client"))?;
    let endpoint = Endpoint::new(&server.origin(), ApiAuth::None, info);
    let made = HttpProvider::new(client, endpoint, Arc::new(clock.clone()));
    Ok(Arc::new(made.map_err(WorkError::setup("provider"))?))
}

fn settings(home: &Path, limits: AgentLimits, budgets: Budgets) -> Settings {
    Settings {
        name: "Ada".to_owned(),
        genesis: "Do what your creator asks, all of it, and say when it is done.".to_owned(),
        long_answers: true,
        limits: AgentLimits { look: LOOK_SPAN, backoff: Span::from_millis(1), ..limits },
        ..crate::settings::settings(home, 4096, budgets)
    }
}

/// The limits of a creator who says what a day may cost, and nothing else.
#[must_use]
pub fn named_limits() -> (AgentLimits, Budgets) {
    let budgets = Budgets {
        ceilings: InferenceCeilings {
            per_day: Some(Microcents::new(DAILY_CENTS * Microcents::PER_CENT)),
            ..InferenceCeilings::default()
        },
        envelope: ENVELOPE,
        creators: Some(UnattendedBudget::default()),
        ..Budgets::default()
    };
    (AgentLimits::default(), budgets)
}

/// Makes the home with the files of a case.
fn furnish(home: &Path, case: &WorkCase) -> Result<(), WorkError> {
    let quiet = "entries: [{name: health_check, enabled: false}]";
    let workspace = home.join("workspace");
    fs::create_dir_all(&workspace).map_err(WorkError::setup("workspace"))?;
    fs::write(home.join("heartbeat.yml"), quiet).map_err(WorkError::setup("schedule"))?;
    for (path, text) in &case.files {
        let path = workspace.join(path);
        let parent = path.parent().unwrap_or(&workspace);
        let made = fs::create_dir_all(parent).and_then(|()| fs::write(&path, text));
        made.map_err(WorkError::setup("files"))?;
    }
    Ok(())
}

/// The first thing that must have come of a task and is not there.
fn lacks(home: &Path, case: &WorkCase) -> Result<Option<String>, WorkError> {
    let reader = Reader::open(&home.join("state.db")).map_err(WorkError::setup("record"))?;
    let sent = reader.outbox_since(0, SENT_MAX).map_err(WorkError::setup("record"))?;
    let workspace = home.join("workspace");
    let lacks = |want: &WorkExpectation| match want {
        WorkExpectation::File(path, wanted) => match fs::read_to_string(workspace.join(path)) {
            Ok(text) if text.trim() == wanted.trim() => None,
            Ok(_) => Some(format!("{path} holds something else")),
            Err(_) => Some(format!("{path} is not there")),
        },
        WorkExpectation::NoFile(path) => {
            workspace.join(path).exists().then(|| format!("{path} is still there"))
        }
        WorkExpectation::Told(words) => {
            let told = sent.iter().any(|sent| sent.body.text.contains(words));
            (!told).then(|| format!("the creator was not told {words:?}"))
        }
    };
    Ok(case.wants.iter().find_map(lacks))
}
