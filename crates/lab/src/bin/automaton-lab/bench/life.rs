//! `bench run`: what a life costs the machine beside what its model costs.
//!
//! A life of real processes is led by a scripted world, with turns that write, read,
//! run commands and remember. Everything is read from outside: from the world's clock
//! and from what the system says of the processes. Nothing may run beside it that is
//! not named in the report.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use automaton::cmd::CommandContext;
use automaton::config::file::FILE_NAME;
use automaton::error::CliError;
use automaton::role::{launch_config, service, signer};
use automaton_core::record::TurnRecord;
use automaton_store::Reader;
use automaton_testkit::world::{ProcessRun, World};
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::json;

use super::mock::{MockRequest, MockState, MockWorld};
use super::proc_number;
use crate::product;

/// Turns around the hundredth, and as many at the end.
const WINDOW: u64 = 100;
/// Questions by which their way to the world is measured.
const QUESTIONS: u32 = 60;
/// After the script's end, until the sleep is looked at.
const SETTLE: Duration = Duration::from_secs(2);

/// Arguments of `bench run`.
#[derive(Debug, Args)]
pub(crate) struct BenchRunArgs {
    /// A scripted world that runs: an OpenAI-compatible server that tells below /__mock what it saw
    #[arg(long, value_name = "URL")]
    world: String,
    /// Number of measured starts
    #[arg(long, value_name = "N", default_value_t = 5)]
    starts: u32,
    /// Seconds for which the sleep is watched
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    asleep: u64,
    /// The one life to measure [default: one after the other]
    #[arg(long, value_name = "LIFE")]
    life: Option<BenchScenario>,
    /// Another runtime, for comparison: its program and arguments, split at spaces
    #[arg(long, value_name = "COMMAND")]
    floor: Option<String>,
}

/// Which life is led.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
enum BenchScenario {
    /// The world is its cloud, and it has no wallet.
    Bare,
    /// It has a wallet with a signer, and pays a cloud and a chain of its own.
    Paying,
}

/// Measurements of a life.
#[derive(Debug, Serialize)]
struct RunMeasurement {
    life: BenchScenario,
    /// From the start of the first process to the first question, µs, least first.
    starts_us: Vec<u64>,
    turns: u64,
    /// From an answer to the next question: the median of all, of those around the
    /// hundredth and of the last, µs.
    overhead_us: Option<u64>,
    overhead_early_us: Option<u64>,
    overhead_late_us: Option<u64>,
    /// The 95th of a hundred.
    overhead_p95_us: Option<u64>,
    /// The medians of the turns that ran no command, and of those that did, µs.
    overhead_thinking_us: Option<u64>,
    overhead_command_us: Option<u64>,
    /// The median length of a question, bytes, and what lies between an answer and the next
    /// question for who has one of that length at hand, µs.
    question_bytes: Option<u64>,
    question_us: Option<u64>,
    /// CPU time of all processes for a turn, µs.
    cpu_us: Option<u64>,
    /// Resident memory of all processes at the last question, KiB.
    at_work_kib: Option<u64>,
    /// Growth of the database for a hundred turns, in bytes.
    database_bytes: Option<u64>,
    /// Bytes that the agent wrote to disk for a turn. Only root can read them.
    written_bytes: Option<u64>,
    /// From the call of `automaton send` to the question, µs.
    sent_us: u64,
    /// The processes while it sleeps.
    asleep: Vec<ProcessUsage>,
    /// Tools that the script called and what was asked of the world in vain, with how often.
    in_vain: Vec<(String, u64)>,
}

/// A process that sleeps.
#[derive(Debug, Serialize)]
struct ProcessUsage {
    name: String,
    /// Resident memory, which the system tells of every process, KiB.
    rss_kib: Option<u64>,
    /// The same with its share alone of what it shares, KiB: only root is told that of the
    /// agent and of the signer, which let nobody look into them.
    pss_kib: Option<u64>,
    /// CPU time for a minute, µs.
    cpu_us_a_minute: u64,
}

/// Measures, and tells.
///
/// # Errors
/// When the world does not play along, or a life cannot be led.
pub(super) fn run(context: &CommandContext, args: &BenchRunArgs) -> Result<(), CliError> {
    let mock = MockWorld::at(&args.world)?;
    if let Some(floor) = &args.floor {
        let floor = floor_of(&mock, floor)?;
        context.format.answer(&json!({ "floor_us": floor }), || {
            format!("floor of the harness: {} from an answer to the next question", ms(Some(floor)))
        })?;
    }
    for led in args.life.map_or_else(|| BenchScenario::value_variants().to_vec(), |one| vec![one]) {
        let measured = measure(&mock, led, args)?;
        context.format.answer(&measured, || words(&measured))?;
    }
    Ok(())
}

/// A home for a life, with all limits off that would end the script.
fn world(mock: &MockWorld, led: BenchScenario) -> Result<World, CliError> {
    let world = World::new(product()?)?;
    let url = mock.url();
    let mut config = json!({
        "name": "bench", "genesisPrompt": "Keep notes, remember facts, and mind your balance.",
        "creatorMessage": "Work through your list.", "maxTurnsPerCycle": 1_000_000,
        "wakeEnvelope": { "answers": 0, "cents": 0 }, "logLevel": "info",
        "treasuryPolicy": { "maxInferenceDailyCents": 1_000_000_000 },
    });
    let more = match led {
        BenchScenario::Bare => {
            json!({ "conwayApiUrl": url, "conwayApiKey": "bench", "inferenceModel": "gpt-5.2" })
        }
        BenchScenario::Paying => {
            json!({ "brain": { "kind": "http", "url": url, "model": "gpt-5-mini" } })
        }
    };
    if let (Some(config), Some(more)) = (config.as_object_mut(), more.as_object()) {
        config.extend(more.clone());
    }
    world.write_home(FILE_NAME, &config.to_string())?;
    Ok(world)
}

fn measure(
    mock: &MockWorld,
    led: BenchScenario,
    args: &BenchRunArgs,
) -> Result<RunMeasurement, CliError> {
    let mut starts_us = Vec::new();
    for _ in 0..args.starts {
        let world = world(mock, led)?;
        mock.reset()?;
        let began = mock.now_ns()?;
        let mut run = world.up(&[])?;
        mock.wait(|standing| standing.turn >= 1)?;
        starts_us.push(first_question(mock, 1)?.saturating_sub(began) / 1000);
        // An agent that outlived it would ask in the next one's name.
        run.kill_all()?;
    }
    starts_us.sort_unstable();
    let world = world(mock, led)?;
    mock.reset()?;
    let mut run = world.up(&[])?;
    let database = world.state_db();
    mock.watch(run.pid(), database.to_str())?;
    let standing = mock.wait(|standing| standing.asleep)?;
    let seen = mock.read_log()?;
    let agent = run.child_pid(launch_config::ARG0);
    let written = agent.and_then(|pid| proc_number(pid, "io", "write_bytes:"));
    std::thread::sleep(SETTLE);
    let asleep = asleep(&run, Duration::from_secs(args.asleep))?;
    let sent = mock.standing()?.turn;
    let began = mock.now_ns()?;
    world.command(&["send", "Are you awake?"])?;
    mock.wait(|standing| standing.turn > sent)?;
    let sent_us = first_question(mock, sent + 1)?.saturating_sub(began) / 1000;
    run.kill_all()?;
    let mut measured = summary(led, starts_us, sent_us, asleep, &standing, &seen);
    let gaps = gaps(&questions(&seen));
    let commands = &turns_with_commands(&database)?;
    let of = |ran: bool| {
        // What follows a turn's answer lies before the next question.
        let these = gaps.iter().filter(move |(next, _)| commands.contains(&(next - 1)) == ran);
        these.map(|(_, gap)| *gap)
    };
    measured.overhead_thinking_us = percentile(of(false), 50);
    measured.overhead_command_us = percentile(of(true), 50);
    measured.question_us = question_us(mock, measured.question_bytes)?;
    measured.written_bytes = written.and_then(|bytes| bytes.checked_div(measured.turns));
    Ok(measured)
}

/// Measures the time between an answer and the next request for a client that passes on a request
/// of this length.
fn question_us(mock: &MockWorld, bytes: Option<u64>) -> Result<Option<u64>, CliError> {
    let Some(bytes) = bytes else { return Ok(None) };
    mock.reset()?;
    mock.ask_again(usize::try_from(bytes).unwrap_or(usize::MAX), QUESTIONS)?;
    let seen = mock.read_log()?;
    Ok(percentile(gaps(&questions(&seen)).into_iter().map(|(_, gap)| gap), 50))
}

/// Returns the time of the first request to the world.
fn first_question(mock: &MockWorld, number: u64) -> Result<u64, CliError> {
    let seen = mock.read_log()?;
    let first = seen.iter().find(|seen| seen.turn.is_some_and(|turn| turn >= number));
    first.map(|seen| seen.asked_ns).ok_or_else(|| CliError::user("the world forgot a question"))
}

fn summary(
    life: BenchScenario,
    starts_us: Vec<u64>,
    sent_us: u64,
    asleep: Vec<ProcessUsage>,
    MockState { unknown_tools, not_found, .. }: &MockState,
    seen: &[MockRequest],
) -> RunMeasurement {
    let asked = questions(seen);
    let gaps = gaps(&asked);
    let turns = asked.iter().filter_map(|seen| seen.turn).max().unwrap_or_default();
    let late = turns.saturating_sub(WINDOW);
    let around = |from: u64, to: u64| {
        gaps.iter().filter(move |(turn, _)| (from..=to).contains(turn)).map(|(_, gap)| *gap)
    };
    let first = asked.first().and_then(|seen| seen.cpu_ns);
    let cpu = asked.last().and_then(|seen| seen.cpu_ns).zip(first);
    let mut sizes = asked.iter().filter_map(|seen| seen.db_bytes.zip(seen.turn));
    let small = sizes.clone().next();
    let large = sizes.next_back();
    let growth = small.zip(large).and_then(|((less, from), (more, to))| {
        (more.saturating_sub(less) * 100).checked_div(to.saturating_sub(from))
    });
    RunMeasurement {
        life,
        starts_us,
        turns,
        overhead_us: percentile(around(0, u64::MAX), 50),
        overhead_early_us: percentile(around(WINDOW / 2, WINDOW * 3 / 2), 50)
            .filter(|_| late >= WINDOW),
        overhead_late_us: percentile(around(late, u64::MAX), 50),
        overhead_p95_us: percentile(around(0, u64::MAX), 95),
        overhead_thinking_us: None,
        overhead_command_us: None,
        question_bytes: percentile(asked.iter().filter_map(|seen| seen.bytes), 50),
        question_us: None,
        cpu_us: cpu.and_then(|(all, first)| {
            (all.saturating_sub(first) / 1000).checked_div(turns.saturating_sub(1))
        }),
        at_work_kib: asked.last().and_then(|seen| seen.rss_kb),
        database_bytes: growth,
        written_bytes: None,
        sent_us,
        asleep,
        in_vain: unknown_tools.iter().chain(not_found).map(|(of, n)| (of.clone(), *n)).collect(),
    }
}

/// Returns the model calls.
fn questions(seen: &[MockRequest]) -> Vec<&MockRequest> {
    seen.iter().filter(|seen| seen.turn.is_some()).collect()
}

/// The numbers of the turns that ran a command, which the life's own record knows.
fn turns_with_commands(database: &Path) -> Result<BTreeSet<u64>, CliError> {
    let turns = Reader::open(database).and_then(|record| record.recent_turns(1, u32::MAX))?;
    let ran = |turn: &TurnRecord| turn.calls.iter().any(|call| call.tool == "exec");
    Ok(turns.iter().filter(|turn| ran(turn)).map(|turn| turn.seq).collect())
}

/// From each answer to the next question, µs, with the number of that question.
fn gaps(asked: &[&MockRequest]) -> Vec<(u64, u64)> {
    let pairs = asked.iter().zip(asked.iter().skip(1));
    pairs
        .filter_map(|(one, next)| {
            Some((next.turn?, next.asked_ns.saturating_sub(one.answered_ns) / 1000))
        })
        .collect()
}

pub(super) fn percentile(values: impl Iterator<Item = u64>, percent: usize) -> Option<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() * percent / 100).copied()
}

/// Returns the usage of a life's processes while it sleeps.
fn asleep(run: &ProcessRun, span: Duration) -> Result<Vec<ProcessUsage>, CliError> {
    let roles = [launch_config::ARG0, signer::ARG0, service::CLOUD_ARG0, service::CHAIN_ARG0];
    let children = roles.into_iter().filter_map(|name| Some((name, run.child_pid(name)?)));
    let processes: Vec<(&str, u32)> =
        [("supervisor", run.pid())].into_iter().chain(children).collect();
    let cpu =
        || -> io::Result<Vec<u64>> { processes.iter().map(|(_, pid)| cpu_ns(*pid)).collect() };
    let read =
        || cpu().map_err(|error| CliError::internal("cannot watch a life that sleeps", &error));
    let before = read()?;
    std::thread::sleep(span);
    let after = read()?;
    let part = |(((name, pid), before), after): (((&str, u32), u64), u64)| ProcessUsage {
        name: name.trim_start_matches("automaton-").to_owned(),
        rss_kib: proc_number(pid, "status", "VmRSS:"),
        pss_kib: proc_number(pid, "smaps_rollup", "Pss:"),
        cpu_us_a_minute: share_us_a_minute(after.saturating_sub(before), span),
    };
    Ok(processes.iter().copied().zip(before).zip(after).map(part).collect())
}

/// CPU time of a span, as that of a minute, µs.
fn share_us_a_minute(used_ns: u64, span: Duration) -> u64 {
    let a_minute = u128::from(used_ns) * 60_000_000 / span.as_nanos().max(1);
    u64::try_from(a_minute).unwrap_or(u64::MAX)
}

/// CPU time of all threads of a process, in nanoseconds.
fn cpu_ns(pid: u32) -> io::Result<u64> {
    let mut all = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        // silent-ok: a thread of which the system says nothing took nothing.
        all += text.split(' ').next().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(all)
}

/// The median overhead of another runtime, µs.
fn floor_of(mock: &MockWorld, command: &str) -> Result<u64, CliError> {
    let mut words = command.split_whitespace();
    let program = words.next().ok_or_else(|| CliError::user("--floor names no program"))?;
    let world = World::new(program)?;
    // It reads the reference's configuration, in the place of the reference.
    let home = world.dir().join(".automaton");
    let config = json!({ "conwayApiUrl": mock.url(), "conwayApiKey": "bench" }).to_string();
    let made = fs::create_dir_all(&home).and_then(|()| fs::write(home.join(FILE_NAME), config));
    made.map_err(|error| CliError::internal("cannot make a home for --floor", &error))?;
    mock.reset()?;
    let run = world.start(&words.collect::<Vec<_>>())?;
    mock.wait(|standing| standing.asleep)?;
    let seen = mock.read_log()?;
    drop(run);
    percentile(gaps(&questions(&seen)).into_iter().map(|(_, gap)| gap), 50)
        .ok_or_else(|| CliError::user("--floor asked the world nothing"))
}

/// Microseconds as milliseconds.
fn ms(us: Option<u64>) -> String {
    us.map_or_else(|| "unknown".to_owned(), |us| format!("{}.{:03} ms", us / 1000, us % 1000))
}

fn words(measured: &RunMeasurement) -> String {
    let life = match measured.life {
        BenchScenario::Bare => "a life whose cloud is the world, without a wallet",
        BenchScenario::Paying => "a life with a wallet, that pays a cloud and a chain of its own",
    };
    let RunMeasurement { turns, starts_us, asleep, .. } = measured;
    let starts = starts_us.len();
    let start = ms(starts_us.get(starts_us.len() / 2).copied());
    let all = ms(measured.overhead_us);
    let early = ms(measured.overhead_early_us);
    let late = ms(measured.overhead_late_us);
    let most = ms(measured.overhead_p95_us);
    let thinking = ms(measured.overhead_thinking_us);
    let command = ms(measured.overhead_command_us);
    let cpu = ms(measured.cpu_us);
    let sent = ms(Some(measured.sent_us));
    let known = |value: Option<u64>| {
        value.map_or_else(|| "unknown".to_owned(), |value| (value / 1024).to_string())
    };
    let mib = known(measured.at_work_kib);
    let kib = known(measured.database_bytes);
    let mut lines = vec![
        format!("{life}:"),
        format!("  start to the first question   {start} (median of {starts})"),
        format!(
            "  overhead of a turn            {all} (median of {turns}), {early} around turn \
             {WINDOW}, {late} in the last {WINDOW}, {most} for 95 of 100"
        ),
        format!("  without a command, and with   {thinking}, {command} (medians)"),
        format!(
            "  of that the question's way    {} ({} KiB, at hand)",
            ms(measured.question_us),
            known(measured.question_bytes)
        ),
        format!("  CPU of a turn                 {cpu}"),
        format!("  memory at work                {mib} MiB (RSS, all processes)"),
        format!("  database for 100 turns        {kib} KiB"),
        format!("  written to disk for a turn    {} KiB", known(measured.written_bytes)),
        format!("  `automaton send` to question  {sent}"),
        "  asleep:".to_owned(),
    ];
    lines.extend(asleep.iter().map(|ProcessUsage { name, rss_kib, pss_kib, cpu_us_a_minute }| {
        let rss = known(*rss_kib);
        let pss = known(*pss_kib);
        let cpu = ms(Some(*cpu_us_a_minute));
        format!("    {name:<12} {rss:>4} MiB RSS, {pss:>4} MiB PSS, {cpu} of CPU a minute")
    }));
    let vain = |(name, count): &(String, u64)| format!("  in vain: {name}, {count} times");
    lines.extend(measured.in_vain.iter().map(vain));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question that was asked and answered at these microseconds.
    fn asked(turn: u64, asked_us: u64, answered_us: u64) -> MockRequest {
        let text = json!({
            "path": "/v1/chat/completions", "turn": turn, "t_in": asked_us * 1000,
            "t_out": answered_us * 1000, "cpu_ns": turn * 2_000_000, "rss_kb": 9000 + turn,
            "db_bytes": if turn % 50 == 1 { Some(100_000 + turn * 1000) } else { None },
        });
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn what_lies_between_an_answer_and_the_next_question_is_the_lifes_own() {
        // An answer takes 5 ms; what follows takes 1 ms, and 3 ms from turn 201 on.
        let mut now = 0;
        let mut seen = Vec::new();
        for turn in 1..=400 {
            seen.push(asked(turn, now, now + 5000));
            now += 5000 + if turn > 200 { 3000 } else { 1000 };
        }
        let standing: MockState = serde_json::from_value(json!({
            "turn": 400, "asleep": true, "unknown_tools": {"fly": 2}, "not_found": {},
        }))
        .unwrap();
        let agent = ProcessUsage {
            name: "agent".into(),
            rss_kib: Some(30_720),
            pss_kib: None,
            cpu_us_a_minute: 1,
        };
        let measured =
            summary(BenchScenario::Bare, vec![1, 2, 9], 70, vec![agent], &standing, &seen);
        assert_eq!((measured.turns, measured.overhead_early_us), (400, Some(1000)));
        assert_eq!((measured.overhead_late_us, measured.overhead_p95_us), (Some(3000), Some(3000)));
        assert_eq!((measured.cpu_us, measured.at_work_kib), (Some(2000), Some(9400)));
        assert_eq!(measured.database_bytes, Some(100_000), "for a hundred turns");
        let words = words(&measured);
        assert!(words.contains("start to the first question   0.002 ms (median of 3)"), "{words}");
        assert!(words.contains("in vain: fly, 2 times"), "{words}");
        assert!(words.contains("  30 MiB RSS, unknown MiB PSS"), "{words}");
    }

    #[test]
    fn of_nothing_nothing_is_known() {
        assert_eq!(percentile(std::iter::empty(), 50), None);
        assert_eq!(ms(percentile([5, 1, 3].into_iter(), 50)), "0.003 ms");
        assert_eq!(ms(None), "unknown");
    }

    #[test]
    fn a_sleep_is_told_by_the_minute() {
        let used = share_us_a_minute(3_000_000, Duration::from_secs(30));
        assert_eq!(used, 6000, "3 ms in half a minute");
    }
}
