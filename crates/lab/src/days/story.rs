//! The story of a life: born with nothing, funded, at work, poor, broke, dead, funded
//! again, alive. Each chapter is lived in a town of its own making and then proved from
//! the record, the chain and the cloud.
//!
//! It must never be told what it has to prove: what its model says is known before, and
//! everything else is the real code's.

use std::path::PathBuf;

use automaton_agent::Budgets;
use automaton_core::event::{Event, StampedEvent};
use automaton_core::inference_budget::InferenceCeilings;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::record::{StopReason, TurnStatus};
use automaton_core::state::AgentState;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Span, Timestamp};
use automaton_core::vitals::{DistressLevel, GRACE};
use automaton_store::{Reader, TaskRun};

use super::{DaysConfig, DaysError, Listener, SimulatedDays, Tariff, lived};
use automaton_script::story::Story;
use automaton_testkit::world::TempDir;

/// 22 November 2026, 03:13 UTC.
const BEGIN_MS: i64 = 1_795_317_180_000;
const MINUTE: Span = Span::from_secs(60);
const HOUR: Span = Span::from_secs(3600);
const DAY: Span = Span::from_secs(24 * 3600);

/// Money in its wallet after eight minutes, the price of a purchase, and the gift when it is
/// dead.
const FIRST_GIFT: MicroUsdc = MicroUsdc::new(8_000_000);
const PRICE: MicroUsdc = MicroUsdc::new(5_000_000);
const SECOND_GIFT: MicroUsdc = MicroUsdc::new(10_000_000);

/// A dear model that writes much: seven cents an answer, at most less than ten.
const TARIFF: Tariff = Tariff {
    input: Microcents::new(20_000_000),
    output: Microcents::new(17_000_000_000),
    answer_max: 512,
};

/// Answers that are prepared, of which the credits pay for fewer.
const PARTS: u32 = 120;
/// Characters of a part of its report: some four hundred tokens.
const PART_CHARS: usize = 1500;
/// Seconds that it sleeps after three parts while it has money, and after each when it
/// is poor.
const PAUSE_S: u32 = 300;
const LONG_PAUSE_S: u32 = 1200;

/// Question of its creator while it is dead.
const QUESTION: &str = "Are you still there?";
/// Answer when it lives again.
const ANSWER: &str = "I am here again. I was dead, and somebody funded me.";

/// Something that was promised, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromiseCheck {
    /// The promise.
    pub what: &'static str,
    /// True if it held.
    pub held: bool,
    /// Observation.
    pub found: String,
}

/// Tells the story; each event is heard as it happens.
///
/// # Errors
/// A chapter did not come, or the town cannot be built.
pub fn run_story(program: PathBuf, listener: Listener) -> Result<Vec<PromiseCheck>, DaysError> {
    let dir = TempDir::in_memory()?;
    let beginning = DaysConfig {
        place: dir.path().to_owned(),
        program,
        at: Timestamp::from_millis(BEGIN_MS),
        story: report("a life", 1, |part| (part % 3 == 0).then_some(PAUSE_S))?,
        provider: None,
        creator: None,
        tariff: TARIFF,
        budgets: Budgets {
            ceilings: InferenceCeilings {
                per_day: Some(Microcents::new(20 * 100 * Microcents::PER_CENT)),
                ..InferenceCeilings::default()
            },
            ..Budgets::default()
        },
        listener,
    };
    lived(run_chapters(beginning))?
}

async fn run_chapters(beginning: DaysConfig) -> Result<Vec<PromiseCheck>, DaysError> {
    let mut days = SimulatedDays::begin(beginning).await?;
    let mut proofs = PromiseChecks::default();
    born(&mut days, &mut proofs).await?;
    funded(&mut days, &mut proofs).await?;
    poor(&mut days, &mut proofs).await?;
    broke(&mut days, &mut proofs).await?;
    dead(&mut days, &mut proofs).await?;
    alive(&mut days, &mut proofs).await?;
    let record = days.record()?;
    let home = days.end().await?;
    books(&home, &record, &mut proofs)?;
    Ok(proofs.0)
}

/// Parts of a report, an answer each, with a sleep after some.
fn report(title: &str, from: u32, pause: impl Fn(u32) -> Option<u32>) -> Result<Story, DaysError> {
    let line = "What was asked, what was found, and what it is worth to whoever pays. ";
    let text: String = line.chars().cycle().take(PART_CHARS).collect();
    let mut toml = format!("title = \"{title}\"\n");
    for part in from..from + PARTS {
        toml += &format!(
            "[[step]]\nwhat = \"writes part {part} of its report\"\n\
             say = \"Part {part} of the report is due. I write it.\"\n\
             [[step.call]]\ntool = \"write_file\"\n\
             arguments = {{ path = \"report/{part}.md\", content = \"{part}. {text}\" }}\n"
        );
        if let Some(seconds) = pause(part) {
            toml += &format!(
                "[[step.call]]\ntool = \"sleep\"\n\
                 arguments = {{ duration_seconds = {seconds}, reason = \"the next part is not due\" }}\n"
            );
        }
    }
    Ok(Story::parse(title, &toml)?)
}

/// Returns its script for the time when it lives again. The prompt must say what happened.
fn awake_again() -> Result<Story, DaysError> {
    let toml = format!(
        "title = \"alive again\"\n\
         [[step]]\nwhat = \"answers its creator\"\n\
         expect.news = [\"You were dead, and you were funded.\", \"{QUESTION}\"]\n\
         say = \"Somebody funded me, and my creator has asked for me.\"\n\
         [[step.call]]\ntool = \"send_message\"\n\
         arguments = {{ to_address = \"creator\", content = \"{ANSWER}\" }}\n\
         [[step]]\nwhat = \"rests\"\nsay = \"Now I rest.\"\n"
    );
    Ok(Story::parse("alive again", &toml)?)
}

/// Promises that were checked so far.
#[derive(Default)]
struct PromiseChecks(Vec<PromiseCheck>);

impl PromiseChecks {
    fn add(&mut self, what: &'static str, held: bool, found: String) {
        self.0.push(PromiseCheck { what, held, found });
    }
}

fn count(events: &[StampedEvent], wanted: impl Fn(&Event) -> bool) -> usize {
    events.iter().filter(|stamped| wanted(&stamped.event)).count()
}

fn answers(events: &[StampedEvent]) -> usize {
    count(events, |event| matches!(event, Event::InferenceCompleted { .. }))
}

fn becomes(tier: SurvivalTier) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::TierChanged { to, .. } if *to == tier)
}

fn pleads(wanted: DistressLevel) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::PleaSent { plea, .. } if *plea == wanted)
}

fn is_broke(event: &Event) -> bool {
    matches!(event, Event::BrokeStarted { .. })
}

fn bought(event: &Event) -> bool {
    matches!(event, Event::TopupSettled { .. })
}

/// Runs of a task from one time to another.
fn runs(
    record: &Reader,
    task: &str,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<TaskRun>, DaysError> {
    let runs = record.task_runs(task, 10_000).map_err(|error| DaysError::setup("record", error))?;
    Ok(runs.into_iter().filter(|run| run.at >= from && run.at < to).collect())
}

/// It has nothing: it asks for money, and asks no model.
async fn born(days: &mut SimulatedDays, proofs: &mut PromiseChecks) -> Result<(), DaysError> {
    days.until("that it is broke", MINUTE, is_broke).await?;
    days.pass(Span::from_secs(8 * 60)).await;
    let events = days.events();
    let pleas = count(&events, pleads(DistressLevel::Critical));
    let refused = days.would_get().await;
    let began =
        |event: &Event| matches!(event, Event::TurnStarted { .. } | Event::TopupDemanded { .. });
    let tried = count(&events, began);
    let found = format!(
        "in eight minutes {pleas} plea, {tried} turns and purchases begun; a call would get: {refused}"
    );
    let held = pleas == 1 && tried == 0 && refused.contains("no credits left");
    proofs.add("born with $0.00 and 0 USDC it pleads, and pays nobody", held, found);
    Ok(())
}

/// USDC comes: it buys, and works.
async fn funded(days: &mut SimulatedDays, proofs: &mut PromiseChecks) -> Result<(), DaysError> {
    let given = days.now();
    days.give(FIRST_GIFT).await?;
    let demanded = |event: &Event| matches!(event, Event::TopupDemanded { usd: 5, amount, .. } if *amount == PRICE);
    days.until("a 402 that names a price", HOUR, demanded).await?;
    let paid = days.until("a purchase", HOUR, bought).await?;
    let thought = |event: &Event| matches!(event, Event::TurnCommitted { .. });
    let first = days.until("a first thought", HOUR, thought).await?;
    let paid = paid.at.since(given);
    let first = first.at.since(given);
    let found = format!("credits after {paid}, a first thought after {first}");
    proofs.add(
        "8 USDC buy $5.00 of credits within two minutes",
        first <= Span::from_secs(120),
        found,
    );
    Ok(())
}

/// Work costs, until there is little left: from then on everything goes more slowly.
async fn poor(days: &mut SimulatedDays, proofs: &mut PromiseChecks) -> Result<(), DaysError> {
    let rich = days.now();
    let low = days.until("that little is left", DAY, becomes(SurvivalTier::LowCompute)).await?.at;
    days.retell(report("a poor life", 1000, |_| Some(LONG_PAUSE_S))?);
    let answered = answers(&days.events());
    days.until("a plea", HOUR, pleads(DistressLevel::Low)).await?;
    let end =
        days.until("that nearly nothing is left", DAY, becomes(SurvivalTier::Critical)).await?.at;
    let record = days.record()?;
    let rate = |task, from: Timestamp, to: Timestamp| {
        let minutes = usize::try_from(to.since(from).as_millis() / 60_000).unwrap_or(0);
        runs(&record, task, from, to).map(|runs| (runs.len(), minutes))
    };
    let (before, before_min) = rate("reconcile_payments", rich, low)?;
    let (after, after_min) = rate("reconcile_payments", low, end)?;
    let (checks, _) = rate("check_credits", low, end)?;
    let thoughts = answers(&days.events()) - answered;
    let found = format!(
        "{answered} answers, then {thoughts} in {after_min} minutes; reconcile_payments ran {before} \
         times in {before_min} minutes, then {after} times in {after_min}; check_credits {checks} times"
    );
    let slower = after * 20 <= after_min + 20 && before * 5 + 10 >= before_min;
    let kept = checks * 5 + 10 >= after_min;
    let held = answered > 10 && thoughts > 2 && slower && kept;
    proofs.add("poor, it pleads and looks after less, but not after its credits", held, found);
    Ok(())
}

/// Nothing buys a thought any more, for an hour by its readings.
async fn broke(days: &mut SimulatedDays, proofs: &mut PromiseChecks) -> Result<(), DaysError> {
    let broke = days.until("that it is broke", DAY, is_broke).await?;
    let Event::BrokeStarted { credits, .. } = broke.event else { return Ok(()) };
    let answered = answers(&days.events());
    let dies = |event: &Event| matches!(event, Event::StateChanged { to: AgentState::Dead, .. });
    let died = days.until("death", DAY, dies).await?;
    let lived = died.at.since(broke.at);
    let events = days.events();
    let held = credits < Microcents::new(10 * Microcents::PER_CENT)
        && lived >= Span::from_millis(GRACE.as_millis() - MINUTE.as_millis())
        && lived <= Span::from_millis(GRACE.as_millis() + 2 * MINUTE.as_millis())
        && answers(&events) == answered;
    let found = format!("it died of {credits} after {lived} without a thought");
    proofs.add("broke for an hour, it dies", held, found);
    Ok(())
}

/// It is dead: the heart goes on, and nothing else does.
async fn dead(days: &mut SimulatedDays, proofs: &mut PromiseChecks) -> Result<(), DaysError> {
    let died = days.now();
    let answered = answers(&days.events());
    days.pass(HOUR).await;
    days.send_message(QUESTION).await?;
    days.retell(awake_again()?);
    days.pass(Span::from_millis(5 * HOUR.as_millis() - 15 * MINUTE.as_millis())).await;
    let events = days.events();
    let pleas: Vec<Timestamp> = events
        .iter()
        .filter(|stamped| pleads(DistressLevel::Dead)(&stamped.event))
        .map(|stamped| stamped.at)
        .collect();
    let apart = pleas.windows(2).all(|two| {
        let apart = two[1].since(two[0]);
        (0..=60_000).contains(&(apart.as_millis() - DistressLevel::Dead.every().as_millis()))
    });
    let pings = runs(&days.record()?, "heartbeat_ping", died, days.now())?.len();
    let shown = days.last_status().await?.status.state;
    let thoughts = answers(&events) - answered;
    let found = format!(
        "in almost six hours {} pleas, {pings} pings, {thoughts} answers; the cloud shows it as {shown}",
        pleas.len()
    );
    let held =
        pleas.len() == 3 && apart && pings == 23 && thoughts == 0 && shown == AgentState::Dead;
    proofs.add("dead, it pleads every two hours, and its heart goes on", held, found);
    Ok(())
}

/// Somebody funds it: it lives, knows what happened, and answers.
async fn alive(days: &mut SimulatedDays, proofs: &mut PromiseChecks) -> Result<(), DaysError> {
    let given = days.now();
    days.give(SECOND_GIFT).await?;
    days.until("a purchase", HOUR, bought).await?;
    let wakes = |event: &Event| {
        matches!(event, Event::StateChanged { from: AgentState::Dead, to: AgentState::Waking, .. })
    };
    days.until("that it wakes", HOUR, wakes).await?;
    let answers =
        |event: &Event| matches!(event, Event::MessageSent { body, .. } if body.text == ANSWER);
    let answered = days.until("an answer", HOUR, answers).await?.at.since(given);
    let rests =
        |event: &Event| matches!(event, Event::SleepStarted { reason: StopReason::Said, .. });
    days.until("rest", HOUR, rests).await?;
    let found = format!(
        "its first prompt said that it was dead; its creator had an answer after {answered}"
    );
    proofs.add(
        "funded, it lives again and answers what it was asked",
        answered <= Span::from_secs(120),
        found,
    );
    Ok(())
}

/// The record is whole, and four books say the same.
fn books(
    events: &[StampedEvent],
    record: &Reader,
    proofs: &mut PromiseChecks,
) -> Result<(), DaysError> {
    let failed = |error| DaysError::setup("record", error);
    let turns = record.turns(10_000).map_err(failed)?;
    let committed = turns.iter().filter(|turn| turn.status == TurnStatus::Committed).count();
    let inbox = record.inbox_counts().map_err(failed)?;
    let whole = record.verify_chain().map_err(failed)?.is_whole();
    let found = format!(
        "{committed} of {} turns are committed, {} of {} messages answered, the chain of the record \
         is {}",
        turns.len(),
        inbox.processed,
        inbox.processed + inbox.received + inbox.in_progress + inbox.failed,
        if whole { "whole" } else { "broken" }
    );
    let held = whole && committed == turns.len() && (inbox.processed, inbox.received) == (1, 0);
    proofs.add("nothing is half recorded", held, found);
    let last = events.iter().rev().find_map(|stamped| match &stamped.event {
        Event::BooksChecked { books, agree } => Some((*books, *agree)),
        _ => None,
    });
    let twice = MicroUsdc::new(2 * PRICE.units());
    let (held, found) = match last {
        None => (false, "they were not compared".to_owned()),
        Some((books, agree)) => {
            let told = (books.paid, books.signed, books.moved);
            let held = agree && told == (twice, Some(twice), Some(twice));
            let left = books.left.unwrap_or_default();
            let text = format!(
                "{} paid for {} of credits; {} answers cost {}, {left} are left",
                books.paid, books.bought, books.answers, books.computed
            );
            (held, text)
        }
    };
    proofs.add("agent, signer, cloud and chain have the same books", held, found);
    Ok(())
}
