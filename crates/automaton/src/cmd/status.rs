//! `status`: how the automaton is, from its record and, if it runs, from itself.
//!
//! It only looks: it takes no lock, migrates nothing and wakes nobody.

use std::path::Path;

use alloy_primitives::Address;
use automaton_core::alert::Alert;
use automaton_core::pnl::PnlGrouping;
use automaton_core::state::AgentState;
use automaton_core::time::{Clock, Span, SystemClock, Timestamp};
use automaton_core::wire::control::{ControlRequest, ControlResponse};
use automaton_sandbox::{Launcher, probe};
use automaton_store::{AutomatonRow, PortSales, Reader};

use super::CommandContext;
use super::workspace::snapshots_of;
use crate::config::file::ConfigFile;
use crate::control;
use crate::error::CliError;
use crate::home::DATABASE;
use crate::process::executable;
use crate::role::agent;
use crate::role::signer::wallet_of;
use crate::ui::table::rows as rows_of;
use crate::ui::text::{plain, tilde};
use crate::ui::units::{balance, many, number, size, span};
use crate::ui::when::{WallClock, ago};
use crate::ui::{Viewport, phrases};
use crate::view::status::{
    BalanceView, InboxCountsView, NextTaskView, NotStartedView, PortSalesView, PublishedPortView,
    RecordView, StatusOutput, StatusView,
};

/// Alerts among which those that hold are looked for: each rule has at most one.
const ALERTS: u32 = 32;

/// Sentence for a machine that cannot run commands.
const NO_COMMANDS: &str = "no command can run here";

fn next_task(reader: &Reader) -> Result<Option<NextTaskView>, CliError> {
    let tasks = reader.schedule()?.into_iter().filter(|task| task.task.enabled);
    let next_tasks = tasks.map(|task| {
        let next = task.times.next;
        NextTaskView { at: task.retry_at.map_or(next, |at| at.min(next)), task: task.task.name }
    });
    Ok(next_tasks.min_by_key(|task| task.at))
}

/// Shows how the automaton is.
pub(crate) fn run(context: &CommandContext) -> Result<(), CliError> {
    let (home, file) = context.inhabited()?;
    if !home.join(DATABASE).exists() {
        return print_not_started(context, &home, &file);
    }
    let reader = Reader::open(&home.join(DATABASE))?;
    // A brain that is not configured is part of how it is, not a failure.
    let brain = context.resolve(&home, &file);
    let brain = match &brain {
        Ok(resolved) => format!("{} ({})", resolved.brain, resolved.brain_origin),
        Err(failure) => failure.line(),
    };
    let running = match control::ask(&home, &ControlRequest::Status) {
        Ok(ControlResponse::Status(live)) => Some(live),
        // silent-ok: who does not answer as it should is shown as not running.
        Ok(_) | Err(_) => None,
    };
    let limits = match &running {
        Some(live) => live.enforcement.clone(),
        None => limits_here()?,
    };
    let named = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let AutomatonRow { automaton, name, state, born_at, turns, sleep, .. } = reader.life()?;
    let chain = reader.verify_chain()?;
    let total = reader.profit_and_loss(PnlGrouping::Category, Timestamp::EPOCH)?.total;
    let balance = BalanceView::from_vitals(&reader.vitals()?, SystemClock.now());
    let status = StatusView {
        home: home.display().to_string(),
        automaton,
        name,
        state,
        address: wallet_of(&home),
        creator: named(&file.creator_address),
        sandbox: named(&file.sandbox_id),
        born_at,
        turns,
        sleep,
        hibernation: reader
            .hibernation()?
            .map(|now| format!("since {}: {}", now.since, now.reason)),
        running,
        balance: balance.clone(),
        means: balance,
        next_heartbeat: next_task(&reader)?,
        alerts: reader.alerts(ALERTS)?.into_iter().filter(Alert::is_active).collect(),
        brain,
        limits,
        inbox: reader.inbox_counts()?.into(),
        wakes_pending: reader.pending_wakes()?.len(),
        spent: total.cost.to_string(),
        earned: total.revenue.to_string(),
        sold: read_sales(&reader)?,
        published: read_published(&reader)?,
        // silent-ok: `automaton workspace snapshots` says what is wrong with them.
        snapshot: snapshots_of(&home).newest().ok().flatten(),
        record: RecordView {
            bytes: reader.db_bytes()?,
            chain_links: chain.links,
            chain_whole: chain.is_whole(),
            chain_problem: chain.broken.as_ref().map(ToString::to_string),
        },
        version: env!("CARGO_PKG_VERSION"),
    };
    context.format.answer(&StatusOutput::Started(&status), || in_words(&status, &context.screen()))
}

/// Shows an automaton that was never started.
fn print_not_started(
    context: &CommandContext,
    home: &Path,
    file: &ConfigFile,
) -> Result<(), CliError> {
    let name = file.name.as_ref().map_or("the automaton", |name| name.as_str());
    let view = NotStartedView {
        home: home.display().to_string(),
        name: name.to_owned(),
        born: false,
        started: false,
    };
    context.format.answer(&StatusOutput::NotStarted(&view), || {
        format!("{} in {} was not started yet", plain(name), view.home)
    })
}

fn read_sales(reader: &Reader) -> Result<Vec<PortSalesView>, CliError> {
    let sold = reader.port_sales()?.into_iter().map(|it| {
        let PortSales { machine, port, sales, amount, last_at } = it;
        PortSalesView { machine, port, sales, amount, last_at }
    });
    Ok(sold.collect())
}

fn read_published(reader: &Reader) -> Result<Vec<PublishedPortView>, CliError> {
    let published = reader.published_ports()?.into_iter().map(|it| PublishedPortView {
        port: it.port,
        url: it.url,
        price_usdc: it.price,
    });
    Ok(published.collect())
}

/// Returns the limits that commands would have if the automaton ran.
fn limits_here() -> Result<String, CliError> {
    let probe = probe(&Launcher::new(executable()?));
    Ok(match agent::check_sandbox(&probe) {
        Ok(()) => automaton_agent::describe_limits(&probe),
        Err(refusal) => format!("{NO_COMMANDS}: {refusal}"),
    })
}

fn in_words(status: &StatusView, screen: &Viewport) -> String {
    let clock = &screen.when;
    let now = SystemClock.now();
    let running = status.running.as_ref().map_or_else(
        || "no".to_owned(),
        |live| format!("for {} (process {})", span(Span::from_millis(live.uptime_ms)), live.pid),
    );
    let InboxCountsView { received, in_progress, processed, failed } = status.inbox;
    let mut inbox = format!("{} waiting, {processed} answered", many(received, "message"));
    for (count, what) in [(in_progress, "being read"), (failed, "given up")] {
        if count > 0 {
            inbox.push_str(&format!(", {count} {what}"));
        }
    }
    let record = match &status.record.chain_problem {
        None => format!("unbroken, {}", many(status.record.chain_links, "link")),
        Some(problem) => format!("BROKEN: {problem}"),
    };
    let commands = match (&status.sandbox, status.limits.starts_with(NO_COMMANDS)) {
        (Some(machine), _) => format!("on the rented machine {machine}"),
        (None, true) => status.limits.clone(),
        (None, false) => format!("in the sandbox on this machine, limited by {}", status.limits),
    };
    let tools = status.running.as_ref().map_or_else(
        || "known while it runs".to_owned(),
        |live| number(u64::try_from(live.tools).unwrap_or(u64::MAX)),
    );
    let rows = [
        ("Name", plain(&status.name)),
        ("Address", address_in_words(status.address)),
        ("Creator", status.creator.as_deref().map_or_else(|| "not named".to_owned(), plain)),
        ("Running", running),
        ("State", state_in_words(status, clock, now)),
        ("Balance", means_in_words(&status.balance, clock, now)),
        ("Thinks with", plain(&status.brain)),
        ("Inbox", inbox),
        ("Alerts", alerts_in_words(&status.alerts)),
        ("Turns", number(status.turns)),
        ("Spent", status.spent.clone()),
        ("Earned", earned_in_words(status, now)),
        ("Published", published_in_words(status)),
        (
            "Heartbeat",
            match status.running {
                Some(_) => next_task_in_words(status.next_heartbeat.as_ref(), clock, now),
                None => "none while nobody runs it".to_owned(),
            },
        ),
        ("Tools", tools),
        ("Commands", plain(&commands)),
        ("Snapshot", snapshot_in_words(status, now)),
        ("Home", tilde(&status.home, screen.user_home.as_deref())),
        ("Record", format!("{record}, {}", size(status.record.bytes))),
        ("First start", clock.with_age(status.born_at)),
        ("Id", status.automaton.to_string()),
        ("Version", status.version.to_owned()),
    ];
    rows_of(&rows, screen.width())
}

/// The revenue, with what the ports sold.
fn earned_in_words(status: &StatusView, now: Timestamp) -> String {
    let mut text = status.earned.clone();
    for PortSalesView { port, sales, amount, last_at, .. } in &status.sold {
        let requests = many(*sales, "request");
        let last = ago(*last_at, now);
        text.push_str(&format!("; {requests} to port {port} for {amount}, the last {last}"));
    }
    text
}

fn snapshot_in_words(status: &StatusView, now: Timestamp) -> String {
    let Some(newest) = &status.snapshot else {
        return "none of its workspace yet".to_owned();
    };
    let left = match newest.is_complete() {
        true => "",
        false => "; some files are left out: see `automaton workspace snapshots`",
    };
    let (files, taken) = (many(newest.files, "file"), ago(newest.at, now));
    format!("{files}, {}, taken {taken}{left}", size(newest.bytes))
}

fn published_in_words(status: &StatusView) -> String {
    let line = |it: &PublishedPortView| {
        let price = it.price_usdc.as_ref().map(|price| format!(" for {} USDC", plain(price)));
        format!("port {} at {}{}", it.port, plain(&it.url), price.unwrap_or_default())
    };
    match status.published.is_empty() {
        true => "nothing".to_owned(),
        false => {
            let open = status.published.iter().map(line).collect::<Vec<_>>().join("; ");
            let closed = if status.running.is_some() { "" } else { " (when it runs)" };
            format!("{open}{closed}")
        }
    }
}

fn address_in_words(address: Option<Address>) -> String {
    address.map_or_else(|| "none: it has no wallet".to_owned(), |address| address.to_string())
}

fn state_in_words(status: &StatusView, clock: &WallClock, now: Timestamp) -> String {
    let mut told = phrases::state(status.state).to_owned();
    let is_awake = matches!(
        status.state,
        AgentState::Waking | AgentState::Running | AgentState::LowCompute | AgentState::Critical
    );
    if is_awake && status.running.is_none() {
        told.push_str(" when it stopped");
    }
    if let Some(sleep) = status.sleep {
        let until = match sleep.until {
            Some(until) => format!("{} ({})", clock.near(until, now), ago(until, now)),
            None => "something happens".to_owned(),
        };
        told.push_str(&format!(" until {until}: {}", phrases::stop(sleep.reason)));
    }
    if let Some(why) = &status.hibernation {
        told.push_str(&format!(" {}", plain(why)));
    }
    told
}

fn means_in_words(means: &BalanceView, clock: &WallClock, now: Timestamp) -> String {
    let BalanceView { tier, credits, usdc, read_at, broke_for_ms, lives_cheaply_since, .. } = means;
    let Some(((tier, credits), read)) = tier.zip(*credits).zip(*read_at) else {
        return "not read yet".to_owned();
    };
    let usdc = usdc.map_or_else(|| "unknown USDC".to_owned(), |usdc| usdc.to_string());
    let broke = broke_for_ms.map(|ms| format!("; broke for {}", span(Span::from_millis(ms))));
    let cheaply = lives_cheaply_since
        .map(|since| format!("; it chose to live cheaply at {}", clock.near(since, now)));
    format!(
        "{} of credits and {usdc} ({}): {}{}{}",
        balance(credits),
        ago(read, now),
        phrases::tier(tier),
        broke.unwrap_or_default(),
        cheaply.unwrap_or_default()
    )
}

fn next_task_in_words(task: Option<&NextTaskView>, clock: &WallClock, now: Timestamp) -> String {
    match task {
        None => "no task is planned".to_owned(),
        Some(NextTaskView { task, at }) => {
            format!("next is {}, at {} ({})", plain(task), clock.near(*at, now), ago(*at, now))
        }
    }
}

fn alerts_in_words(alerts: &[Alert]) -> String {
    let told: Vec<String> = alerts
        .iter()
        .map(|alert| format!("{}: {}", phrases::rule(alert.rule), plain(&alert.message)))
        .collect();
    if told.is_empty() { "No alerts".to_owned() } else { told.join("; ") }
}
