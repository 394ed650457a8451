//! Speed of judging calls, and of judging and recording them: `bench policy`.
//!
//! The calls are those of an ordinary working day, and nothing objects to them. What is
//! recorded is a turn of ten of them, with decisions, intents and their links of the
//! chain in one transaction that is on the disk before the next one begins. The limits an
//! hour are left out, since they would end it at once.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use automaton::cmd::{CommandContext, id_generator};
use automaton::error::CliError;
use automaton::home::{DATABASE, make_directory};
use automaton::operator;
use automaton::process;
use automaton_core::faults::NoFaults;
use automaton_core::intent::{Intent, Intentional};
use automaton_core::origin::{Origins, ValueOrigin};
use automaton_core::record::{Authority, CallStatus, Usage, WakeCause, WakeSource};
use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Span, Timestamp};
use automaton_core::tool::{ArgsHash, Effect, Risk, ToolName};
use automaton_core::trust::{Label, Labelled};
use automaton_policy::rates::Attempts;
use automaton_policy::{Facts, Judge, RuleContext, Verdict, judge};
use automaton_store::{
    DecisionContext, Hash, JudgedCall, Judgement, NewAutomaton, NewDecision, Store,
};
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use super::{BenchRate, LASTS, forget_peak, own_pid};

/// Judgements between two looks at the clock.
const AT_ONCE: usize = 1000;

/// Approximate growth of the database's log with such a transaction, in bytes.
const SYNC_BYTES: usize = 64 * 1024;

/// Results.
#[derive(Debug, Serialize)]
struct PolicyMeasurement {
    /// Calls that were judged.
    judged: BenchRate,
    /// Calls that were judged with the operator's rules that `policy init` writes.
    judged_with_rules: BenchRate,
    /// Calls that were judged and are on the disk with their links.
    recorded: BenchRate,
    /// Writes of as many bytes that the disk took, one after the other: what no record
    /// can be faster than, ten decisions each.
    bare_syncs: BenchRate,
}

/// A call that intends one thing.
#[derive(Clone)]
struct BenchCall(Intent);

impl Intentional for BenchCall {
    fn intents(&self) -> Vec<Intent> {
        vec![self.0.clone()]
    }
}

/// Measures, and tells.
///
/// # Errors
/// When the record refuses, or something of this is not allowed.
pub(super) fn run(context: &CommandContext) -> Result<(), CliError> {
    let (recorded, bare_syncs) = recorded(context)?;
    let rules = operator::judge(Path::new(operator::FILE_NAME), Some(operator::DEFAULT_TEXT))?;
    let (judged, judged_with_rules) = (judged(&Judge::default())?, judged(&rules)?);
    let measured = PolicyMeasurement { judged, judged_with_rules, recorded, bare_syncs };
    context.format.answer(&measured, || {
        let line =
            |what: &str, rate: BenchRate| format!("{:>8} decisions a second {what}", rate.per_second);
        let judged = line("judged", measured.judged);
        let ruled = line("judged with policy.cedar as it comes", measured.judged_with_rules);
        let recorded = line("judged and recorded, ten a transaction", measured.recorded);
        let syncs = measured.bare_syncs.per_second;
        format!(
            "{judged}\n{ruled}\n{recorded}\n{syncs:>8} writes a second that are on this disk before the next"
        )
    })
}

/// Ten calls of a day.
fn day() -> [BenchCall; 10] {
    let exec = |command: &str| Intent::Exec { command: command.to_owned(), timeout_ms: 30_000 };
    [
        exec("ls -la"),
        Intent::ReadPath { path: "notes/today.md".to_owned() },
        exec("cargo test 2>&1 | tail -20"),
        Intent::WritePath { path: "src/main.rs".to_owned(), bytes: 4_000 },
        Intent::Recall,
        exec("for f in *.md; do wc -l \"$f\"; done"),
        Intent::Remember { category: "domain".to_owned(), key: "build".to_owned(), bytes: 80 },
        Intent::Message { recipient: "creator".to_owned(), bytes: 400 },
        Intent::Observe,
        Intent::Sleep { span: Span::from_secs(600).into() },
    ]
    .map(BenchCall)
}

fn facts() -> Facts {
    Facts {
        input: Label::Creator,
        heard: Label::Creator,
        risk: Risk::Caution,
        creator: None,
        paid_hosts: Vec::new(),
        egress: Arc::default(),
        attempts: Attempts::default(),
        creator_waits: false,
        gives_alone: false,
        published_before: false,
        purpose_asks: false,
        tier: None,
        hard_limit: None,
        origins: Origins::assumed(ValueOrigin::Own),
        secrets: Vec::new(),
    }
}

fn judged(judge: &Judge) -> Result<BenchRate, CliError> {
    let calls = day();
    let facts = facts();
    let tool: ToolName =
        "exec".parse().map_err(|error| CliError::internal("not a tool's name", &error))?;
    let at = Timestamp::from_millis(0);
    let tier = Some(SurvivalTier::Normal);
    let moment = RuleContext { tool: &tool, at, tier, turn: 1, call: 1 };
    forget_peak();
    let began = Instant::now();
    let mut done = 0;
    while began.elapsed() < LASTS {
        for call in calls.iter().cycle().take(AT_ONCE) {
            expect(judge.judge(call.clone(), &facts, &moment, None))?;
        }
        done += AT_ONCE as u64;
    }
    Ok(BenchRate::new(done, began, &[own_pid()]))
}

/// The decision, which has to allow it: else something else is measured.
fn expect(verdict: Verdict<BenchCall>) -> Result<automaton_policy::Decision, CliError> {
    match verdict {
        Verdict::Allowed(_, decision) => Ok(decision),
        Verdict::Held(decision) | Verdict::Refused(decision) => {
            Err(CliError::user(format!("a call of the bench is refused: {}", decision.reason)))
        }
    }
}

/// Decisions on the disk, and as many bytes on the same disk without any record.
fn recorded(context: &CommandContext) -> Result<(BenchRate, BenchRate), CliError> {
    let scratch = context.scratch()?;
    let home = scratch.home();
    let failed = |error| CliError::internal("cannot make a record to measure", &error);
    make_directory(&home).map_err(failed)?;
    forget_peak();
    let bare = syncs(&home).map_err(failed)?;
    let recorded = process::runtime()?.block_on(async {
        let store = Store::open(&home.join(DATABASE), id_generator(), Arc::new(NoFaults))?;
        let hash = Hash::of(b"bench");
        let name = "bench".to_owned();
        let born = NewAutomaton { name, genesis_sha256: hash, constitution_sha256: hash };
        store.birth(born).await?;
        let reason = Labelled::new(Label::Creator, "bench", "bench");
        let cause = WakeCause { source: WakeSource::Manual, reason };
        let session = store.open_session(vec![cause]).await?;
        let ids = id_generator();
        let calls = day();
        let facts = facts();
        let mut done = 0;
        let mut spent = std::time::Duration::ZERO;
        while spent < LASTS {
            // To open the turn is no part of what is measured.
            let turn = store.open_turn(session, Vec::new(), 0).await?.id;
            let began = Instant::now();
            let rows = calls.iter().map(|call| {
                let decision = expect(judge(call.clone(), &facts))?;
                Ok(row(ids.id(), decision))
            });
            let calls = rows.collect::<Result<Vec<_>, CliError>>()?;
            done += calls.len() as u64;
            let thought = String::new();
            let voice = None;
            let judgement = Judgement { turn, thought, voice, usage: usage(), calls };
            store.record_judgement(judgement, None).await?;
            spent += began.elapsed();
        }
        store.close().await?;
        Ok::<_, CliError>(BenchRate::lasting(done, spent, &[own_pid()]))
    })?;
    Ok((recorded, bare))
}

/// Writes to a file, each on the disk before the next one.
fn syncs(folder: &Path) -> io::Result<BenchRate> {
    let mut file = File::create(folder.join("syncs"))?;
    let began = Instant::now();
    let mut done = 0;
    while began.elapsed() < LASTS {
        file.write_all(&[0; SYNC_BYTES])?;
        file.sync_data()?;
        done += 1;
    }
    Ok(BenchRate::new(done, began, &[own_pid()]))
}

fn row(id: automaton_core::id::CallId, decision: automaton_policy::Decision) -> JudgedCall {
    let names = |ids: &[automaton_policy::RuleId]| ids.iter().map(ToString::to_string).collect();
    JudgedCall {
        id,
        tool: "exec".to_owned(),
        arguments: "{\"command\":\"ls -la\"}".to_owned(),
        args_hash: Some(ArgsHash::of(&json!({ "command": "ls -la" }))),
        mutates: Effect::Mutates,
        status: CallStatus::Planned,
        result: None,
        decision: Some(NewDecision {
            outcome: decision.outcome,
            code: decision.code.name().to_owned(),
            reason: decision.reason.into_owned(),
            risk: Risk::Caution,
            rules_evaluated: names(decision.rules_evaluated),
            rules_triggered: names(&decision.rules_triggered),
            under: DecisionContext {
                input: Label::Creator,
                heard: Label::Creator,
                authority: Authority::of(Label::Creator),
                approval: None,
                latency_ms: Span::ZERO.into(),
            },
        }),
        intents: decision.intents,
        limits: Vec::new(),
        question: None,
        approval: None,
    }
}

fn usage() -> Usage {
    Usage { model: "bench".to_owned(), ..Usage::default() }
}
