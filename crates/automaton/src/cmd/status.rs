//! `status`: how the automaton is, from its record and, if it runs, from itself.
//!
//! It only looks: it takes no lock, migrates nothing and wakes nobody.

use automaton_core::alert::Alert;
use automaton_core::id::AutomatonId;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::pnl::By;
use automaton_core::record::Sleep;
use automaton_core::state::AgentState;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Clock, Span, SystemClock, Timestamp};
use automaton_core::vitals::Vitals;
use automaton_core::wire::control::{Answer, Command, LiveStatus};
use automaton_sandbox::{Launcher, probe};
use automaton_store::{InboxCounts, Life, Reader};
use serde::Serialize;
use serde_json::json;

use super::Context;
use super::live::executable;
use crate::args::BrainFlags;
use crate::config::resolve;
use crate::control;
use crate::error::Failure;
use crate::home::DATABASE;
use crate::role::agent;
use crate::ui::text::plain;

/// Alerts among which those that hold are looked for: each rule has at most one.
const ALERTS: u32 = 32;

/// Everything that `status` says.
#[derive(Serialize)]
struct Status {
    home: String,
    automaton: AutomatonId,
    name: String,
    state: AgentState,
    born_at: Timestamp,
    turns: u64,
    sleep: Option<Sleep>,
    hibernation: Option<String>,
    running: Option<LiveStatus>,
    means: Means,
    next_heartbeat: Option<NextBeat>,
    alerts: Vec<Alert>,
    brain: String,
    limits: String,
    inbox: InboxCounts,
    wakes_pending: usize,
    spent: String,
    record: Record,
    version: &'static str,
}

#[derive(Serialize)]
struct Record {
    bytes: u64,
    chain_links: u64,
    chain_whole: bool,
    chain_problem: Option<String>,
}

/// How it is off, by what was last read; what was never read is `null`, and
/// so is how long it is broke, when it is not, and since when it lives cheaply by choice.
#[derive(Serialize)]
struct Means {
    tier: Option<SurvivalTier>,
    credits: Option<Microcents>,
    usdc: Option<MicroUsdc>,
    read_at: Option<Timestamp>,
    age_ms: Option<i64>,
    broke_for_ms: Option<i64>,
    lives_cheaply_since: Option<Timestamp>,
}

impl Means {
    fn of(vitals: &Vitals, now: Timestamp) -> Self {
        let Vitals { credits, usdc, read_at, broke_for, thrift, .. } = *vitals;
        Self {
            tier: vitals.tier(),
            credits,
            usdc,
            read_at,
            age_ms: read_at.map(|at| now.since(at).as_millis()),
            broke_for_ms: broke_for.map(Span::as_millis),
            lives_cheaply_since: thrift.map(|thrift| thrift.since),
        }
    }
}

/// The task of the heartbeat that is due first.
#[derive(Serialize)]
struct NextBeat {
    task: String,
    /// Of a run that failed it may be the next try.
    at: Timestamp,
}

fn next_beat(reader: &Reader) -> Result<Option<NextBeat>, Failure> {
    let tasks = reader.schedule()?.into_iter().filter(|task| task.task.enabled);
    let beats = tasks.map(|task| {
        let next = task.times.next;
        NextBeat { at: task.retry_at.map_or(next, |at| at.min(next)), task: task.task.name }
    });
    Ok(beats.min_by_key(|beat| beat.at))
}

/// Shows how the automaton is.
pub(crate) fn run(context: &Context) -> Result<(), Failure> {
    let (home, file) = context.inhabited()?;
    if !home.join(DATABASE).exists() {
        let shown = home.display().to_string();
        let name = file.name.as_ref().map_or("the automaton", |name| name.as_str());
        return context
            .format
            .answer(&json!({ "home": shown, "name": name, "born": false }), || {
                format!("{} in {shown} was never awake", plain(name))
            });
    }
    let reader = Reader::open(&home.join(DATABASE))?;
    // A brain that is not configured is part of how it is, not a failure.
    let brain = resolve::resolve(&home, &file, &BrainFlags::default(), &context.environment);
    let brain = match &brain {
        Ok(resolved) => format!("{} ({})", resolved.brain, resolved.brain_origin),
        Err(failure) => failure.line(),
    };
    let running = match control::ask(&home, &Command::Status) {
        Ok(Answer::Status(live)) => Some(live),
        // silent-ok: who does not answer as it should is shown as not running.
        Ok(_) | Err(_) => None,
    };
    let limits = match &running {
        Some(live) => live.enforcement.clone(),
        None => limits_here()?,
    };
    let Life { automaton, name, state, born_at, turns, sleep, .. } = reader.life()?;
    let chain = reader.verify_chain()?;
    let status = Status {
        home: home.display().to_string(),
        automaton,
        name,
        state,
        born_at,
        turns,
        sleep,
        hibernation: reader
            .hibernation()?
            .map(|now| format!("since {}: {}", now.since, now.reason)),
        running,
        means: Means::of(&reader.vitals()?, SystemClock.now()),
        next_heartbeat: next_beat(&reader)?,
        alerts: reader.alerts(ALERTS)?.into_iter().filter(Alert::is_active).collect(),
        brain,
        limits,
        inbox: reader.inbox_counts()?,
        wakes_pending: reader.pending_wakes()?.len(),
        spent: reader.profit_and_loss(By::Category, Timestamp::EPOCH)?.total.cost.to_string(),
        record: Record {
            bytes: reader.db_bytes()?,
            chain_links: chain.links,
            chain_whole: chain.is_whole(),
            chain_problem: chain.broken.as_ref().map(ToString::to_string),
        },
        version: env!("CARGO_PKG_VERSION"),
    };
    context.format.answer(&status, || in_words(&status))
}

/// What would hold the limits of commands, were the automaton running.
fn limits_here() -> Result<String, Failure> {
    let probe = probe(&Launcher::new(executable()?));
    Ok(match agent::check_sandbox(&probe) {
        Ok(()) => automaton_agent::describe_limits(&probe),
        Err(refusal) => format!("no command can run here: {refusal}"),
    })
}

fn in_words(status: &Status) -> String {
    let sleep = status.sleep.map_or_else(String::new, |sleep| {
        let until = match sleep.until.zip(sleep.left(SystemClock.now())) {
            Some((until, left)) => format!("{until} ({left} left)"),
            None => "something happens".to_owned(),
        };
        format!(", until {until}: {}", sleep.reason)
    });
    let hibernation = status.hibernation.as_ref();
    let hibernation = hibernation.map_or_else(String::new, |why| format!(" {}", plain(why)));
    let running = status.running.as_ref().map_or_else(
        || "no".to_owned(),
        |live| format!("process {}, for {} s", live.pid, live.uptime_ms / 1000),
    );
    let InboxCounts { received, in_progress, processed, failed } = status.inbox;
    let chain = match &status.record.chain_problem {
        None => format!("whole, {} links", status.record.chain_links),
        Some(problem) => format!("BROKEN: {problem}"),
    };
    let rows = [
        ("name", plain(&status.name)),
        ("automaton", status.automaton.to_string()),
        ("home", status.home.clone()),
        ("running", running),
        ("state", format!("{}{sleep}{hibernation}", status.state)),
        ("born", status.born_at.to_string()),
        ("turns", status.turns.to_string()),
        ("means", means_in_words(&status.means)),
        ("heartbeat", beat_in_words(status.next_heartbeat.as_ref())),
        ("alerts", alerts_in_words(&status.alerts)),
        ("brain", plain(&status.brain)),
        ("limits", plain(&status.limits)),
        (
            "inbox",
            format!(
                "{received} waiting, {in_progress} in work, {processed} answered, {failed} given up"
            ),
        ),
        ("spent", status.spent.clone()),
        ("record", format!("{} KiB, chain {chain}", status.record.bytes / 1024)),
        ("version", status.version.to_owned()),
    ];
    let lines: Vec<String> =
        rows.into_iter().map(|(name, value)| format!("{name:<10} {value}")).collect();
    lines.join("\n")
}

fn means_in_words(means: &Means) -> String {
    let Means { tier, credits, usdc, age_ms, broke_for_ms, lives_cheaply_since, .. } = means;
    let Some(((tier, credits), age)) = tier.zip(*credits).zip(*age_ms) else {
        return "never read".to_owned();
    };
    let usdc = usdc.map_or_else(|| "unknown USDC".to_owned(), |usdc| usdc.to_string());
    let broke = broke_for_ms
        .map_or_else(String::new, |ms| format!(", broke for {}", Span::from_millis(ms)));
    let cheaply = lives_cheaply_since
        .map_or_else(String::new, |since| format!(", lives cheaply by choice since {since}"));
    let read = Span::from_millis(age);
    format!("{tier}: {credits} of credits, {usdc}, read {read} ago{broke}{cheaply}")
}

fn beat_in_words(beat: Option<&NextBeat>) -> String {
    match beat {
        None => "no task is planned".to_owned(),
        Some(NextBeat { task, at }) => format!("{} at {at}", plain(task)),
    }
}

fn alerts_in_words(alerts: &[Alert]) -> String {
    let names: Vec<&str> = alerts.iter().map(|alert| alert.rule.name()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
