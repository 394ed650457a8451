//! The agent's process: the composition root of one automaton's life.
//!
//! Everything that lives is put together here from the charter: store, model,
//! sandbox, clock, chance, faults. The process closes itself to debuggers
//! before it reads the charter, ends gracefully on a signal or when its
//! supervisor is gone, and must never read the environment or a configuration.

use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use automaton_agent::treasury::{Treasury, TreasuryDeps};
use automaton_agent::{
    ANSWER_TOKENS, AgentDeps, AgentLimits, Budgets, EgressConfig, EndReason, EventSink, Pace,
    Sampling, Settings, StopLoss, TURNS_MAX, Toolbox, UnattendedBudget,
};
use automaton_core::entropy::SystemEntropy;
use automaton_core::error::{Classified, ErrorClass};
use automaton_core::event::{Event, StampedEvent};
use automaton_core::faults::{Faults, NoFaults};
use automaton_core::id::IdGenerator;
use automaton_core::money::Microcents;
use automaton_core::time::{Clock, Span, SystemClock};
use automaton_core::trust::{Label, Labelled};
use automaton_inference::ProviderRegistry;
use automaton_sandbox::process::{self, LockError, LockGuard, Signals};
use automaton_sandbox::{
    Launcher, PlanRefusal, Probe, Program, SandboxSpec, SystemBootClock, harden, plan, probe,
};
use automaton_script::fault::{ArmedFaults, FaultSpec};
use automaton_store::{InboxCounts, Store};
use tokio::sync::{broadcast, watch};

use super::embedder;
use super::launch_config::{self, ChildConfig, ChildMessage, LIFELINE, LaunchConfig};
use super::money::{self, CloudAccess, Identity};
use super::provider;
use super::pulled_models::PulledModels;
use crate::args::{BrainFlags, RemoteFlags};
use crate::config::env::Environment;
use crate::config::file::{self, EnvelopeFile, StopLossFile};
use crate::config::resolve::{self, ResolvedConfig};
use crate::config::values::Ranged;
use crate::descriptor::{StopSignals, SupervisorLink};
use crate::error::CliError;
use crate::home::{self, DATABASE, WORKSPACE};
use crate::operator;
use crate::process::runtime;
use crate::role::signer::wallet_of;

/// Time for which the agent may go on after its supervisor is gone. Cloud, chain and signer went
/// with it, so there is nothing to wait for, and the next agent waits for the home.
const ORPHAN_MAX: Duration = Duration::from_secs(1);

/// With a number of turns, at most so much of each sleep is waited for.
const SLEEP_CAP: Span = Span::from_secs(1);

/// Default envelope between two calls of its creator.
const ANSWERS: u32 = 30;
const CENTS: Microcents = Microcents::new(25 * Microcents::PER_CENT);

/// The key under which the configured message of the creator is stored, so that
/// it comes once in a life, however often the agent starts.
const CREATOR_MESSAGE_KEY: &str = "creatorMessage";

/// Events that wait for a follower at most; one that is further behind is let go.
const FEED_MAX: usize = 1024;

/// Interval, and number of tries, to wait for the home's last agent.
const LOCK_POLL: Duration = Duration::from_millis(50);
const LOCK_TRIES: u32 = 500;

/// Lives one life. Must be called on the main thread, before any other starts.
pub(crate) fn main() -> ExitCode {
    launch_config::ended(start())
}

fn start() -> Result<(), CliError> {
    harden()?;
    let signals = Signals::receive()?;
    let lifeline = process::take_inherited(LIFELINE)?;
    let ChildConfig { diagnostics, authorities, config } = launch_config::read::<LaunchConfig>()?;
    authorities.install();
    diagnostics.start("agent");
    let _lock = lock(&config.resolved.home)?;
    runtime()?.block_on(async {
        let (stop, stopped) = watch::channel(false);
        let mut life = pin!(run_agent(&config, stopped));
        let signals = StopSignals::watch(&signals)?;
        let supervisor = SupervisorLink::watch(lifeline)?;
        let mut orphaned = false;
        loop {
            // Every arm is cancel-safe: the life goes on where it was, and the
            // others only wait for readiness.
            tokio::select! {
                biased;
                ended = &mut life => return ended,
                signal = signals.next() => {
                    signal?;
                    stop.send_replace(true);
                }
                () = supervisor.is_gone(), if !orphaned => {
                    orphaned = true;
                    stop.send_replace(true);
                }
                () = tokio::time::sleep(ORPHAN_MAX), if orphaned => process::kill_self(),
            }
        }
    })
}

/// Takes the home. An agent whose supervisor was killed ends soon; until it
/// has, this one waits.
fn lock(home: &Path) -> Result<LockGuard, CliError> {
    let mut tries = 0;
    loop {
        match home::lock_agent(home) {
            Err(LockError::Held { .. }) if tries < LOCK_TRIES => tries += 1,
            taken => return Ok(taken?),
        }
        std::thread::sleep(LOCK_POLL);
    }
}

/// Connects all parts and runs the agent to its end.
async fn run_agent(
    config: &LaunchConfig,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), CliError> {
    let resolved = &config.resolved;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let ids = IdGenerator::new(Arc::clone(&clock), Arc::new(SystemEntropy));
    let events = Arc::new(EventPipe::new(&ids));
    let faults = armed(config.fault.as_deref().map(|text| (text, resolved.home.as_path())))?;
    let store = Store::open(&resolved.home.join(DATABASE), ids.clone(), Arc::clone(&faults))?;
    let (automaton, constitution) =
        home::birth_or_load(&store, &resolved.home, &resolved.name, &resolved.genesis).await?;
    events.send(Event::AgentStarted {
        automaton,
        name: resolved.name.clone(),
        home: resolved.home.display().to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    if let Some(message) = &resolved.creator_message {
        receive(&store, message, CREATOR_MESSAGE_KEY, &events).await?;
    }
    if let Some(ask) = &config.ask {
        receive(&store, &ask.text, &ask.key, &events).await?;
    }
    let launcher = Launcher::new(config.executable.clone());
    let probe = probe(&launcher);
    report_sandbox(&probe, &events);
    let begun = ids.now();
    let who = Identity { automaton, resolved, ids: &ids };
    let brain = brain(config, &launcher, &probe, who, clock, &events);
    // Both arms are safe to drop: a model that is being loaded is killed then.
    let (providers, paid) = tokio::select! {
        biased;
        _ = stopped.wait_for(|stop| *stop) => return Ok(store.close().await?),
        brain = brain => brain?,
    };
    events.send(brain_ready(&providers, ids.now().since(begun)));
    let sink = Arc::clone(&events) as Arc<dyn EventSink>;
    let boot = Arc::new(SystemBootClock);
    let told = Arc::clone(&sink);
    let around = TreasuryDeps { ids: ids.clone(), boot, faults: Arc::clone(&faults), events: told };
    let made = embedder::of_life(resolved, paid.as_ref(), (store.clone(), ids.clone()));
    let embedder = events.or_tell(made, "nothing makes vectors of what it remembers", None);
    let treasury = paid.map(|(context, _)| Treasury::new(store.clone(), context, around));
    let treasury = treasury.map(|treasury| under(resolved, treasury)).transpose()?;
    let settings = settings(resolved, &config.egress.open(), config.turns_max, constitution);
    let deps = AgentDeps {
        store: store.clone(),
        providers,
        embedder,
        launcher: Arc::new(launcher),
        probe,
        started_at: ids.now(),
        ids,
        faults,
        events: sink,
        judge: operator::judge(&operator::path(&resolved.home), config.operator.as_deref())?,
        treasury,
        toolbox: Arc::new(Toolbox::built_in()?),
    };
    let ended = automaton_agent::live(settings, deps, stopped).await;
    let closed = store.close().await;
    let reason = why_stopped(ended?.reason, config.turns_max);
    closed?;
    events.send(Event::AgentStopped { reason });
    Ok(())
}

/// Reports if no command can run on this machine.
fn report_sandbox(probe: &Probe, events: &EventPipe) {
    if let Err(refusal) = check_sandbox(probe) {
        events.send(Event::ErrorReported {
            kind: refusal.kind(),
            error: format!("no command can run here: {refusal}"),
            hint: refusal.hint(),
        });
    }
}

/// Returns the reason for the end of the process, after a colon.
fn why_stopped(reason: EndReason, turns_max: Option<u32>) -> String {
    match (reason, turns_max) {
        (EndReason::TurnsUsed, Some(1)) => "its one turn is used".to_owned(),
        (EndReason::TurnsUsed, Some(turns)) => format!("{turns} of {turns} turns used"),
        (EndReason::TurnsUsed, None) => "its turns are used".to_owned(),
        (EndReason::Answered, _) => "it has answered, and no turn is left to do".to_owned(),
        (EndReason::Shutdown, _) => "it was asked to".to_owned(),
        (EndReason::Stopped, _) => "you asked it to".to_owned(),
    }
}

/// A treasury under its creator's limits.
fn under(resolved: &ResolvedConfig, treasury: Treasury) -> Result<Arc<Treasury>, CliError> {
    let treasury = treasury
        .with_limits(resolved.treasury_policy.limits())?
        .with_creator(resolved.creator_address);
    Ok(Arc::new(treasury.with_answer_timeout(answer_within(resolved))))
}

/// The model, and what it is paid with where it costs something.
async fn brain(
    config: &LaunchConfig,
    launcher: &Launcher,
    probe: &Probe,
    who: Identity<'_>,
    clock: Arc<dyn Clock>,
    events: &EventPipe,
) -> Result<(ProviderRegistry, Option<CloudAccess>), CliError> {
    let (providers, paid) = match &config.money {
        None => {
            let clock = Arc::clone(&clock);
            (provider::registry(&config.resolved, launcher, probe, clock).await?, None)
        }
        Some(money) => {
            let opened = money::open(money, who, Arc::clone(&clock), |event| events.send(event));
            let (providers, access) = opened.await?;
            (providers, Some(access))
        }
    };
    // A file that cannot be used keeps nobody from thinking.
    let found = PulledModels::find(&config.resolved, launcher, probe, Arc::clone(&clock));
    let providers = match found {
        Some(found) => providers.with_finder(Arc::new(found)),
        None => providers,
    };
    let beside =
        provider::with_local_fallback(providers.clone(), &config.resolved, launcher, probe, clock);
    let failed = "the model on this machine cannot stand in";
    let providers = events.or_tell(beside.await, failed, providers);
    Ok((providers, paid))
}

/// Checks that commands can run on this machine, as far as that is known beforehand.
///
/// # Errors
/// The refusal that every command would meet.
pub(crate) fn check_sandbox(probe: &Probe) -> Result<(), PlanRefusal> {
    plan(&SandboxSpec::new(Program::Shell("true".to_owned())), probe).map(|_| ())
}

/// A model that is no worker is announced with the way to a better one.
fn brain_ready(providers: &ProviderRegistry, took: Span) -> Event {
    let usual = providers.usual();
    let model = usual.provider.model();
    let better = model.weak.then_some(
        "Give it a better brain with `automaton up --model FILE.gguf`, or with `automaton up \
         --brain URL --brain-model NAME` for any OpenAI-compatible server.",
    );
    let others = providers.stand_ins();
    let others = (!others.is_empty())
        .then(|| format!("where it does not answer, these are asked: {}", others.join(", ")));
    let notes = model.note.as_deref().into_iter().chain(better).chain(others.as_deref());
    let notes: Vec<&str> = notes.collect();
    Event::BrainReady {
        model: model.id.clone(),
        context_tokens: model.context_tokens,
        note: (!notes.is_empty()).then(|| notes.join(". ")),
        took_ms: took.as_millis(),
    }
}

/// A first message of the creator is stored like any other, before the first
/// turn, and announced once.
async fn receive(store: &Store, text: &str, key: &str, events: &EventPipe) -> Result<(), CliError> {
    let body = Labelled::new(Label::Creator, "creator", text);
    let before = total(store.inbox_counts().await?);
    let message = store.receive(body.clone(), Some(key)).await?;
    if total(store.inbox_counts().await?) > before {
        events.send(Event::MessageReceived { message, body });
    }
    Ok(())
}

const fn total(counts: InboxCounts) -> u64 {
    counts.received + counts.in_progress + counts.processed + counts.failed
}

/// The crash that is rehearsed at a place made for it, if there is one.
///
/// # Errors
/// There is no such point, or the place was not made for it.
pub(crate) fn armed(fault: Option<(&str, &Path)>) -> Result<Arc<dyn Faults>, CliError> {
    let Some((text, home)) = fault else { return Ok(Arc::new(NoFaults)) };
    let failed = |error| CliError::new(ErrorClass::User, "cannot arm the fault").because(&error);
    let charge: FaultSpec = text.parse().map_err(failed)?;
    let kill: fn() = || process::kill_self();
    Ok(Arc::new(ArmedFaults::arm(charge, home, kill)?))
}

/// Returns the agent's settings, from the configuration and its own files.
pub(crate) fn settings(
    resolved: &ResolvedConfig,
    egress: &EgressConfig,
    turns_max: Option<u32>,
    constitution: String,
) -> Settings {
    Settings {
        name: resolved.name.clone(),
        genesis: resolved.genesis.clone(),
        creator_address: resolved.creator_address.map(|address| address.to_string()),
        wallet_address: wallet_of(&resolved.home).map(|address| address.to_string()),
        home: resolved.home.clone(),
        heartbeat: resolved.heartbeat.clone(),
        workspace: resolved.home.join(WORKSPACE),
        constitution,
        soul: resolved.soul.settings(),
        summaries: resolved.summarize_history,
        max_tokens_per_turn: resolved.max_tokens_per_turn.unwrap_or(ANSWER_TOKENS),
        long_answers: resolved.max_tokens_per_turn.is_none(),
        sampling: Sampling { seed: resolved.seed, temperature_milli: resolved.temperature_milli },
        limits: limits(resolved, turns_max),
        machine: resolved.machine.clone(),
        egress: egress.clone(),
        snapshots: resolved.snapshots.limits(),
        budgets: budgets(resolved, turns_max),
        pace: Pace { turns_max, sleep_cap: turns_max.map(|_| SLEEP_CAP) },
    }
}

/// Returns the time for which a question waits for its answer, if the file names one.
fn answer_within(resolved: &ResolvedConfig) -> Option<Span> {
    let minutes = resolved.approvals.wait_minutes?;
    Some(Span::from_secs(i64::from(minutes.get_u32()) * 60))
}

/// The limits of its life. The day's budget says how far a wake goes that the creator causes and
/// whose answers cost something; where they cost nothing that bounds nothing. Who says how many
/// turns it lives has said so of any model, and what the file says of turns holds for all.
fn limits(resolved: &ResolvedConfig, turns_max: Option<u32>) -> AgentLimits {
    let usual = AgentLimits::default();
    let named = resolved.turns_per_wake;
    let said = turns_max.map(|_| TURNS_MAX);
    let or = |turns: u32| named.or(said).unwrap_or(turns);
    AgentLimits {
        turns_per_wake: named.unwrap_or(usual.turns_per_wake),
        turns_of_creator: or(usual.turns_of_creator),
        turns_free: or(usual.turns_free),
        turns_weak: or(usual.turns_weak),
        answer_within: answer_within(resolved),
        ..usual
    }
}

/// Returns the limits for losses and thinking. A run with a number of turns has its limit. A wake
/// that the creator causes has the budget of the day, whether the file names one or not, unless
/// the file sets an envelope.
fn budgets(resolved: &ResolvedConfig, turns_max: Option<u32>) -> Budgets {
    let StopLossFile { per_day_cents, per_goal_cents, total_cents } = resolved.stop_loss;
    let EnvelopeFile { answers, cents } = resolved.wake_envelope;
    let named_or = |few: u32, little: Microcents| UnattendedBudget {
        answers: Some(answers.map_or(few, Ranged::get_u32)).filter(|most| *most > 0),
        cost: Some(cents.map_or(little, Ranged::worth)).filter(|most| *most > Microcents::ZERO),
    };
    let bounded = turns_max.is_some();
    Budgets {
        stop_loss: StopLoss {
            per_day: per_day_cents.map(Ranged::worth),
            per_goal: per_goal_cents.map(Ranged::worth),
            total: total_cents.map(Ranged::worth),
        },
        ceilings: resolved.ceilings(),
        envelope: if bounded { UnattendedBudget::default() } else { named_or(ANSWERS, CENTS) },
        creators: (!bounded).then(|| named_or(0, Microcents::ZERO)),
    }
}

/// Returns the limits of an automaton whose automaton.json says nothing of limits, for who
/// measures what can be done within them.
///
/// # Errors
/// When the configuration that says nothing cannot be read.
pub fn usual_limits() -> Result<(AgentLimits, Budgets), CliError> {
    const TEXT: &str = r#"{"name": "Ada", "genesisPrompt": "Work.",
        "brain": {"kind": "http", "url": "http://127.0.0.1:9"}}"#;
    let file = file::parse(Path::new("automaton.json"), TEXT)?;
    let brain = BrainFlags::default();
    let remote = RemoteFlags::default();
    let environment = Environment::default();
    let resolved = resolve::resolve(Path::new("/"), &file, &brain, &remote, &environment)?;
    Ok((limits(&resolved, None), budgets(&resolved, None)))
}

/// Events as lines on standard output, for the supervisor, and to whoever follows.
#[derive(Debug)]
struct EventPipe {
    ids: IdGenerator,
    feed: broadcast::Sender<Arc<StampedEvent>>,
}

impl EventPipe {
    fn new(ids: &IdGenerator) -> Self {
        Self { ids: ids.clone(), feed: broadcast::Sender::new(FEED_MAX) }
    }

    /// Returns the value; on failure reports it and returns the replacement.
    fn or_tell<T>(&self, made: Result<T, CliError>, failed: &str, instead: T) -> T {
        made.unwrap_or_else(|failure| {
            let error = format!("{failed}: {}", failure.line());
            self.send(Event::ErrorReported { kind: failure.kind, error, hint: failure.remedy });
            instead
        })
    }

    fn send(&self, event: Event) {
        self.emit(StampedEvent { at: self.ids.now(), event });
    }
}

impl EventSink for EventPipe {
    fn emit(&self, event: StampedEvent) {
        if self.feed.receiver_count() > 0 {
            // silent-ok: the last follower left in this very moment.
            self.feed.send(Arc::new(event.clone())).ok();
        }
        launch_config::send_message(&ChildMessage::Event(event));
    }

    fn follow(&self) -> Option<broadcast::Receiver<Arc<StampedEvent>>> {
        Some(self.feed.subscribe())
    }
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
