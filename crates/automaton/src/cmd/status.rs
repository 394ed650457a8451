//! `status`: how the automaton is, from its record and, if it runs, from itself.
//!
//! It only looks: it takes no lock, migrates nothing and wakes nobody.

use automaton_core::id::AutomatonId;
use automaton_core::pnl::By;
use automaton_core::record::Sleep;
use automaton_core::state::AgentState;
use automaton_core::time::{Clock, SystemClock, Timestamp};
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
        let left = sleep.left(SystemClock.now());
        format!(", until {} ({left} left): {}", sleep.until, sleep.reason)
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
