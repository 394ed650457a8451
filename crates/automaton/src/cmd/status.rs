//! `status`: how the automaton is, from its record and, if it runs, from itself.
//!
//! It only looks: it takes no lock, migrates nothing and wakes nobody.

use automaton_core::record::Sleep;
use automaton_core::state::AgentState;
use automaton_core::time::{Clock, SystemClock, Timestamp};
use automaton_core::wire::control::{Answer, Command, LiveStatus};
use automaton_sandbox::{Launcher, probe};
use automaton_store::{ChainReport, InboxCounts, Life, Reader};
use serde::Serialize;

use super::Context;
use super::live::executable;
use crate::config::resolve::{self, BrainFlags};
use crate::control;
use crate::error::Failure;
use crate::home::{self, DATABASE};
use crate::role::agent;
use crate::ui::{self, Format, text::plain};

/// Everything that `status` says.
#[derive(Serialize)]
struct Status {
    home: String,
    automaton: String,
    name: String,
    state: AgentState,
    born_at: Timestamp,
    turns: u64,
    sleep: Option<Sleep>,
    running: Option<LiveStatus>,
    brain: String,
    limits: String,
    inbox: Inbox,
    wakes_pending: usize,
    spent: String,
    record: Record,
    version: &'static str,
}

#[derive(Serialize)]
struct Inbox {
    received: u64,
    in_progress: u64,
    processed: u64,
    failed: u64,
}

#[derive(Serialize)]
struct Record {
    bytes: u64,
    chain_links: u64,
    chain_whole: bool,
    chain_problem: Option<String>,
}

/// Shows how the automaton is.
pub(crate) fn run(context: &Context) -> Result<(), Failure> {
    let home = context.home()?;
    let read = home::read(&home)?;
    if !home.join(DATABASE).exists() {
        return unborn(context, &home.display().to_string(), &read.file);
    }
    let (_, reader) = context.record()?;
    // A brain that is not configured is part of how it is, not a failure.
    let brain = resolve::resolve(&home, &read.file, &BrainFlags::default(), &context.environment);
    let brain = match &brain {
        Ok(resolved) => format!("{} ({})", resolved.brain.value, resolved.brain.origin),
        Err(failure) => failure.told().map(|told| told.line()).unwrap_or_default(),
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
    let status =
        Status { home: home.display().to_string(), running, brain, limits, ..recorded(&reader)? };
    match context.format {
        Format::Json => ui::json(&status),
        Format::Text => ui::line(&in_words(&status)),
    }
}

/// The part that the record alone tells.
fn recorded(reader: &Reader) -> Result<Status, Failure> {
    let Life { automaton, name, state, born_at, turns, sleep, .. } = reader.life()?;
    let InboxCounts { received, in_progress, processed, failed } = reader.inbox_counts()?;
    let chain: ChainReport = reader.verify_chain()?;
    Ok(Status {
        home: String::new(),
        automaton: automaton.to_string(),
        name,
        state,
        born_at,
        turns,
        sleep,
        running: None,
        brain: String::new(),
        limits: String::new(),
        inbox: Inbox { received, in_progress, processed, failed },
        wakes_pending: reader.pending_wakes()?.len(),
        spent: reader.spent()?.to_string(),
        record: Record {
            bytes: reader.db_bytes()?,
            chain_links: chain.links,
            chain_whole: chain.is_whole(),
            chain_problem: chain.broken.as_ref().map(ToString::to_string),
        },
        version: env!("CARGO_PKG_VERSION"),
    })
}

/// What would hold the limits of commands, were the automaton running.
fn limits_here() -> Result<String, Failure> {
    let probe = probe(&Launcher::new(executable()?));
    Ok(match agent::check_sandbox(&probe) {
        Ok(()) => automaton_agent::describe_limits(&probe),
        Err(refusal) => format!("no command can run here: {refusal}"),
    })
}

fn unborn(
    context: &Context,
    home: &str,
    file: &crate::config::file::ConfigFile,
) -> Result<(), Failure> {
    let name = file.name.as_ref().map_or("the automaton", |name| name.as_str());
    match context.format {
        Format::Json => ui::json(&serde_json::json!({ "home": home, "name": name, "born": false })),
        Format::Text => ui::line(&format!("{} in {home} was never awake", plain(name))),
    }
}

fn in_words(status: &Status) -> String {
    let sleep = status.sleep.map_or_else(String::new, |sleep| {
        let left = sleep.left(SystemClock.now());
        format!(", until {} ({left} left): {}", sleep.until, sleep.reason)
    });
    let running = status.running.as_ref().map_or_else(
        || "no".to_owned(),
        |live| format!("process {}, for {} s", live.pid, live.uptime_ms / 1000),
    );
    let Inbox { received, in_progress, processed, failed } = status.inbox;
    let chain = match &status.record.chain_problem {
        None => format!("whole, {} links", status.record.chain_links),
        Some(problem) => format!("BROKEN: {problem}"),
    };
    let rows = [
        ("name", plain(&status.name)),
        ("automaton", status.automaton.clone()),
        ("home", status.home.clone()),
        ("running", running),
        ("state", format!("{}{sleep}", status.state)),
        ("born", status.born_at.to_string()),
        ("turns", status.turns.to_string()),
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
