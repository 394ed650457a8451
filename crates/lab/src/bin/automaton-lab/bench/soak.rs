//! `bench soak`: what a life holds on to, in real time.
//!
//! A life of the built program, with its wallet, signer, cloud and chain, is sent a message again and
//! again. Each message leads to a wake with a command, a file and a fact. Memory, open files and the
//! size of the record are read from outside. A rise of open files, or an agent that had to be
//! started again, fails the run.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use automaton::cmd::CommandContext;
use automaton::config::file::FILE_NAME;
use automaton::error::CliError;
use automaton::process::runtime;
use automaton::role::{launch_config, service, signer};
use automaton_core::event::Event;
use automaton_core::wire::chat::ChatRequest;
use automaton_lab::work::{SolverCall, SolverReply, WorkServer};
use automaton_testkit::world::{ProcessRun, World};
use clap::Args;
use serde::Serialize;
use serde_json::json;
use tokio::sync::oneshot;

use super::proc_number;
use crate::product;

/// The model that answers, and its window in tokens.
const MODEL: &str = "soak";
const WINDOW: u32 = 32_768;
/// How long a wake may take.
const WAKE_WITHIN: Duration = Duration::from_secs(60);
/// Open files that a process may have more at the end than after the first tenth of the run.
const FILES_MORE_MAX: u64 = 16;

/// Arguments of `bench soak`.
#[derive(Debug, Args)]
pub(crate) struct BenchSoakArgs {
    /// How long it lives, in minutes
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_080))]
    minutes: u64,
    /// The least time from one message to the next, in milliseconds
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(50..=3_600_000))]
    every: u64,
    /// How many times it is looked at
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..=10_000))]
    looks: u64,
}

/// What a life held on to at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct SoakSample {
    /// Seconds from the first message.
    seconds: u64,
    /// Messages that were answered.
    wakes: u64,
    /// Bytes of the record, its log of writes included, and of the log of events.
    record_bytes: u64,
    log_bytes: u64,
    processes: Vec<ProcessSample>,
}

/// What one of its processes held on to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ProcessSample {
    name: String,
    /// Resident memory, KiB.
    rss_kib: Option<u64>,
    /// Open files. Only root is told of those of the agent and of the signer.
    files: Option<u64>,
    threads: Option<u64>,
}

/// Lives, looks and tells.
///
/// # Errors
/// When a life cannot be led, ends, or holds on to more and more files.
pub(super) fn run(context: &CommandContext, args: &BenchSoakArgs) -> Result<(), CliError> {
    let model = ServedModel::start()?;
    let world = World::new(product()?)?;
    let config = json!({
        "name": "soak", "genesisPrompt": "Do what you are told.", "logLevel": "info",
        "maxTurnsPerCycle": 1_000_000, "wakeEnvelope": { "answers": 0, "cents": 0 },
        "treasuryPolicy": { "maxInferenceDailyCents": 1_000_000_000 },
        "brain": { "kind": "http", "url": model.url, "model": MODEL, "contextTokens": WINDOW },
    });
    world.write_home(FILE_NAME, &config.to_string())?;
    let mut life = world.up(&[])?;
    wait_for_sleep(&mut life)?;
    let samples = soak(context, args, &world, &mut life)?;
    life.kill_all()?;
    check(&samples)
}

/// A model that is served by a thread of its own, until this is dropped.
struct ServedModel {
    url: String,
    _end: oneshot::Sender<()>,
}

impl ServedModel {
    /// Serves it.
    ///
    /// # Errors
    /// When no port of 127.0.0.1 is free.
    fn start() -> Result<Self, CliError> {
        let runtime = runtime()?;
        let asked = AtomicU64::new(0);
        let think = Box::new(move |request: &ChatRequest| think(&asked, request));
        let server = runtime.block_on(WorkServer::start(MODEL, WINDOW, think));
        let server = server.map_err(|error| CliError::internal("cannot serve a model", &error))?;
        let url = format!("{}/v1", server.origin());
        let (end, ended) = oneshot::channel::<()>();
        std::thread::spawn(move || {
            // That the sender is gone is what is waited for.
            runtime.block_on(async { drop(ended.await) });
            drop(server);
        });
        Ok(Self { url, _end: end })
    }
}

/// What the model does: work for a message, then a last word. What has no tools is the sum of a
/// history.
fn think(asked: &AtomicU64, request: &ChatRequest) -> SolverReply {
    let say = |text: &str| SolverReply { text: text.to_owned(), ..SolverReply::default() };
    if request.tools.is_empty() {
        return say("It worked.");
    }
    let nth = asked.fetch_add(1, Ordering::Relaxed);
    if nth % 2 == 1 {
        return say("Done.");
    }
    let call = |tool: &str, arguments| SolverCall { tool: tool.to_owned(), arguments };
    let fact = json!({ "category": "domain", "key": format!("k{}", nth % 50), "value": "x" });
    let calls = vec![
        call("exec", json!({ "command": "date +%N >> log.txt; tail -n 20 log.txt" })),
        call("write_file", json!({ "path": "note.md", "content": format!("note {nth}") })),
        call("remember_fact", fact),
    ];
    SolverReply { calls, ..say("I work.") }
}

/// Sends messages until the time is over, and looks at the life now and then.
#[expect(clippy::disallowed_methods, reason = "a bench measures in true time")]
fn soak(
    context: &CommandContext,
    args: &BenchSoakArgs,
    world: &World,
    life: &mut ProcessRun,
) -> Result<Vec<SoakSample>, CliError> {
    let lasts = Duration::from_secs(args.minutes.saturating_mul(60));
    let every = Duration::from_millis(args.every);
    let looks = u32::try_from(args.looks).unwrap_or(u32::MAX);
    let (begun, mut wakes, mut samples) = (Instant::now(), 0, Vec::new());
    let mut tell = |sample: SoakSample| -> Result<(), CliError> {
        context.format.answer(&sample, || words(&sample))?;
        samples.push(sample);
        Ok(())
    };
    let mut next_look = Duration::ZERO;
    while begun.elapsed() < lasts {
        let sent = Instant::now();
        let told = world.command(&["send", &format!("Work, the {wakes}th time.")])?;
        if told.code != Some(0) {
            return Err(CliError::user(format!("a message was not taken: {}", told.stderr)));
        }
        wait_for_sleep(life)?;
        wakes += 1;
        if begun.elapsed() >= next_look {
            tell(look(world, life, begun.elapsed(), wakes))?;
            next_look += lasts / looks;
        }
        std::thread::sleep(every.saturating_sub(sent.elapsed()));
    }
    tell(look(world, life, begun.elapsed(), wakes))?;
    Ok(samples)
}

/// Waits until a wake is over.
fn wait_for_sleep(life: &mut ProcessRun) -> Result<(), CliError> {
    let is_over =
        |event: &Event| matches!(event, Event::SleepStarted { .. } | Event::AgentRestarted { .. });
    match life.wait_for(is_over, WAKE_WITHIN)?.event {
        Event::AgentRestarted { .. } => {
            Err(CliError::user("the agent ended and was started again; its log says why"))
        }
        _ => Ok(()),
    }
}

/// Reads from outside what a life holds on to.
fn look(world: &World, life: &ProcessRun, since: Duration, wakes: u64) -> SoakSample {
    let roles = [launch_config::ARG0, signer::ARG0, service::CLOUD_ARG0, service::CHAIN_ARG0];
    let children = roles.into_iter().filter_map(|name| Some((name, life.child_pid(name)?)));
    let process = |(name, pid): (&str, u32)| ProcessSample {
        name: name.trim_start_matches("automaton-").to_owned(),
        rss_kib: proc_number(pid, "status", "VmRSS:"),
        // silent-ok: what the system does not tell is not known.
        files: fs::read_dir(format!("/proc/{pid}/fd")).ok().map(|open| open.count() as u64),
        threads: proc_number(pid, "status", "Threads:"),
    };
    let log = world.state_db().with_extension("db-wal");
    SoakSample {
        seconds: since.as_secs(),
        wakes,
        record_bytes: bytes(&world.state_db()) + bytes(&log),
        log_bytes: bytes(&world.home().join("events.jsonl")),
        processes: [("supervisor", life.pid())].into_iter().chain(children).map(process).collect(),
    }
}

fn bytes(path: &Path) -> u64 {
    // silent-ok: what is not there has no bytes.
    fs::metadata(path).map_or(0, |about| about.len())
}

/// Checks that no process holds on to more and more files.
///
/// # Errors
/// The process that does, with its counts.
fn check(samples: &[SoakSample]) -> Result<(), CliError> {
    let (Some(early), Some(last)) = (samples.get(samples.len() / 10), samples.last()) else {
        return Err(CliError::user("it was not looked at"));
    };
    for (before, after) in early.processes.iter().zip(&last.processes) {
        let (Some(few), Some(many)) = (before.files, after.files) else { continue };
        if before.name == after.name && many > few + FILES_MORE_MAX {
            let what = format!("{} had {few} open files early and {many} at the end", after.name);
            return Err(CliError::user(what));
        }
    }
    Ok(())
}

fn words(sample: &SoakSample) -> String {
    let SoakSample { seconds, wakes, record_bytes, log_bytes, processes } = sample;
    let known = |value: Option<u64>| value.map_or_else(|| "?".to_owned(), |it| it.to_string());
    let each = processes.iter().map(|ProcessSample { name, rss_kib, files, threads }| {
        let mib = known(rss_kib.map(|kib| kib / 1024));
        format!("{name} {mib} MiB, {} files, {} threads", known(*files), known(*threads))
    });
    format!(
        "{seconds:>6} s  {wakes:>6} wakes  record {} KiB  log {} KiB  {}",
        record_bytes / 1024,
        log_bytes / 1024,
        each.collect::<Vec<_>>().join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(files: Option<u64>) -> SoakSample {
        let name = "agent".to_owned();
        let processes = vec![ProcessSample { name, rss_kib: Some(2048), files, threads: Some(3) }];
        SoakSample { seconds: 1, wakes: 2, record_bytes: 4096, log_bytes: 1024, processes }
    }

    #[test]
    fn only_a_rise_of_open_files_fails() {
        let run = |early, last| check(&[sample(early), sample(Some(500)), sample(last)]);
        assert!(run(Some(20), Some(36)).is_ok());
        assert!(run(Some(20), Some(37)).unwrap_err().to_string().contains("agent had 20"));
        assert!(run(None, Some(900)).is_ok(), "what is not known is no rise");
        assert!(check(&[]).is_err());
        assert!(words(&sample(None)).contains("2 wakes  record 4 KiB  log 1 KiB  agent 2 MiB, ?"));
    }
}
