//! What a life looks like from outside: events, record and prompts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use automaton_agent::{
    AgentDeps, AgentLimits, AgentRunOutcome, Budgets, EndReason, EventSink, Pace, Sampling,
    Settings, Toolbox, live,
};
use automaton_core::entropy::SystemEntropy;
use automaton_core::event::{Event, StampedEvent};
use automaton_core::faults::{Faults, NoFaults};
use automaton_core::id::IdGenerator;
use automaton_core::record::{CallStatus, StopReason, TurnRecord, WakeCause, WakeSource};
use automaton_core::time::{Span, SystemClock};
use automaton_core::trust::{Label, Labelled};
use automaton_inference::ProviderRegistry;
use automaton_inference::routing::RoutingMatrix;
use automaton_sandbox::{Launcher, Probe};
use automaton_store::{Hash, NewAutomaton, Reader, Store};
use serde_json::json;
use tokio::sync::watch;

use crate::brain::{Brain, Move, sleep, write};

/// A home with an automaton that is born.
pub(crate) struct Home {
    dir: tempfile::TempDir,
}

#[derive(Default)]
pub(crate) struct Events(Mutex<Vec<Event>>);

impl EventSink for Events {
    fn emit(&self, event: StampedEvent) {
        self.0.lock().unwrap().push(event.event);
    }
}

impl Events {
    pub(crate) fn all(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }
}

pub(crate) fn ids() -> IdGenerator {
    IdGenerator::new(Arc::new(SystemClock), Arc::new(SystemEntropy))
}

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("workspace")).unwrap();
        // There is no sandbox here, which must not wake it at some half-hour.
        let quiet = "entries: [{name: health_check, enabled: false}]";
        std::fs::write(dir.path().join("heartbeat.yml"), quiet).unwrap();
        Self { dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn db(&self) -> PathBuf {
        self.dir.path().join("state.db")
    }

    pub(crate) async fn store(&self, faults: Arc<dyn Faults>) -> Store {
        self.store_by(ids(), faults).await
    }

    /// Its record, told the time by another clock.
    pub(crate) async fn store_by(&self, ids: IdGenerator, faults: Arc<dyn Faults>) -> Store {
        let store = Store::open(&self.db(), ids, faults).unwrap();
        let (genesis_sha256, constitution_sha256) = (Hash::of(b"genesis"), Hash::of(b"laws"));
        let born = NewAutomaton { name: "Ada".to_owned(), genesis_sha256, constitution_sha256 };
        store.birth(born).await.unwrap();
        store
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::open(&self.db()).unwrap()
    }

    pub(crate) fn turns(&self) -> Vec<TurnRecord> {
        self.reader().recent_turns(0, 1000).unwrap()
    }
}

pub(crate) fn settings(home: &Path, turns_max: u32) -> Settings {
    Settings {
        machine: None,
        egress: Default::default(),
        name: "Ada".to_owned(),
        genesis: "Do what is asked.".to_owned(),
        wallet_address: None,
        creator_address: None,
        home: home.to_owned(),
        heartbeat: home.join("heartbeat.yml"),
        workspace: home.join("workspace"),
        constitution: "I. Never harm.".to_owned(),
        soul: Default::default(),
        summaries: true,
        max_tokens_per_turn: 512,
        long_answers: false,
        sampling: Sampling { seed: 1, temperature_milli: 0 },
        snapshots: automaton_core::snapshot::SnapshotLimits::default(),
        budgets: Budgets::default(),
        limits: AgentLimits { backoff: Span::from_millis(1), ..AgentLimits::default() },
        pace: Pace { turns_max: Some(turns_max), sleep_cap: Some(Span::from_millis(1)) },
    }
}

pub(crate) fn deps(store: &Store, brain: Arc<Brain>, events: Arc<Events>) -> AgentDeps {
    AgentDeps {
        store: store.clone(),
        providers: ProviderRegistry::new(brain, "the test", RoutingMatrix::built_in().unwrap()),
        embedder: None,
        launcher: Arc::new(Launcher::new(PathBuf::from("/nonexistent"))),
        probe: Probe::nothing("no sandbox in this test"),
        ids: ids(),
        started_at: ids().now(),
        faults: Arc::new(NoFaults),
        events,
        judge: automaton_policy::Judge::default(),
        treasury: None,
        toolbox: Arc::new(Toolbox::built_in().unwrap()),
    }
}

/// Lives for a number of turns.
pub(crate) async fn lives(
    home: &Home,
    store: &Store,
    brain: &Arc<Brain>,
    turns: u32,
) -> (AgentRunOutcome, Vec<Event>) {
    let events = Arc::new(Events::default());
    let deps = deps(store, Arc::clone(brain), Arc::clone(&events));
    let (_keep, shutdown) = watch::channel(false);
    let ended = live(settings(home.path(), turns), deps, shutdown).await.unwrap();
    (ended, events.all())
}

pub(crate) fn stops(events: &[Event]) -> Vec<StopReason> {
    let reason = |event: &Event| match event {
        Event::WakeEnded { reason, .. } => Some(*reason),
        _ => None,
    };
    events.iter().filter_map(reason).collect()
}

#[tokio::test]
async fn it_is_born_answers_sleeps_and_knows_why_it_wakes() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let asked = Labelled::new(Label::Creator, "creator", "Write hello.");
    store.receive(asked, Some("one")).await.unwrap();
    let work = Move::Call(vec![write("hello.txt", "hello"), sleep()]);
    let moves = [work, Move::Say("Done."), Move::Call(vec![sleep()])];
    let brain = Arc::new(Brain::new(8192, &moves, Move::Say("Fine.")));
    let (ended, events) = lives(&home, &store, &brain, 4).await;
    // Who was started for some turns does not pay for those that nobody waits for.
    assert_eq!((ended.turns, ended.reason), (2, EndReason::Answered));
    assert_eq!(stops(&events), [StopReason::Said]);
    let (ended, events) = lives(&home, &store, &brain, 2).await;
    assert_eq!((ended.turns, ended.reason), (2, EndReason::TurnsUsed));
    assert_eq!(stops(&events), [StopReason::Asked, StopReason::Said]);
    assert_eq!(std::fs::read_to_string(home.path().join("workspace/hello.txt")).unwrap(), "hello");
    let asked = brain.asked();
    assert!(asked[0].contains("):\nWrite hello."), "{}", asked[0]);
    assert!(asked[3].contains("The time of your sleep is over."), "{}", asked[3]);
    assert!(asked[3].contains("Before: You chose to sleep."), "{}", asked[3]);
    assert!(home.reader().verify_chain().unwrap().is_whole());
}

#[tokio::test]
async fn a_malformed_call_goes_back_as_an_error_and_never_runs_with_defaults() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let moves = [
        Move::Garble,
        Move::Call(vec![("no_such_tool", json!({}))]),
        Move::Call(vec![("write_file", json!({ "path": "a" }))]),
    ];
    let brain = Arc::new(Brain::new(8192, &moves, Move::Say("I give up.")));
    let (_, events) = lives(&home, &store, &brain, 3).await;
    let calls: Vec<_> = home.turns().into_iter().flat_map(|turn| turn.calls).collect();
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|call| call.status == CallStatus::Invalid), "{calls:?}");
    assert!(calls[2].result.as_ref().unwrap().text.contains("content"), "{:?}", calls[2].result);
    assert_eq!(stops(&events), [StopReason::Idle], "twice is told, the third time ends the wake");
    assert_eq!(std::fs::read_dir(home.path().join("workspace")).unwrap().count(), 0);
}

#[tokio::test]
async fn nothing_runs_after_a_sleep_or_beyond_the_tenth_call_and_the_model_is_told() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let many = (0..12).map(|n| write(&format!("{n}.txt"), "x")).collect();
    let moves = [Move::Call(many), Move::Call(vec![sleep(), write("late.txt", "x")])];
    let brain = Arc::new(Brain::new(8192, &moves, Move::Say("Fine.")));
    lives(&home, &store, &brain, 3).await;
    let turns = home.turns();
    let skipped = |turn: &TurnRecord| {
        turn.calls.iter().filter(|call| call.status == CallStatus::Skipped).count()
    };
    assert_eq!((skipped(&turns[0]), skipped(&turns[1])), (2, 1));
    assert_eq!(std::fs::read_dir(home.path().join("workspace")).unwrap().count(), 10);
    let shown = brain.seen()[2].iter().map(|message| message.content.clone()).collect::<String>();
    assert!(shown.contains("you chose to sleep before it"), "{shown}");
}

/// How many transactions the write-ahead log holds: frames that end one name the size of the
/// file behind it (<https://www.sqlite.org/fileformat2.html#walformat>).
fn commits(home: &Home) -> usize {
    let log = std::fs::read(home.path().join("state.db-wal")).unwrap();
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().unwrap());
    let (page, salt) = (number(&log[8..]) as usize, &log[16..24]);
    let frames = log[32..].chunks_exact(24 + page);
    frames.filter(|frame| &frame[8..16] == salt && number(&frame[4..]) != 0).count()
}

/// The transactions of a life of some turns, each with a call that writes nothing of its own.
async fn commits_of(turns: u32, brain: impl FnOnce(Brain) -> Brain) -> usize {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let recall = |turn| ("recall_facts", json!({ "query": format!("number {turn}") }));
    let moves: Vec<_> = (0..turns).map(|turn| Move::Call(vec![recall(turn)])).collect();
    let brain = Arc::new(brain(Brain::new(8192, &moves, Move::Say("Fine."))));
    let (ended, _) = lives(&home, &store, &brain, turns).await;
    assert_eq!(ended.turns, turns);
    commits(&home)
}

#[tokio::test]
async fn a_turn_writes_to_its_record_three_times_and_once_more_where_it_costs() {
    let free = Brain::that_is_free as fn(Brain) -> Brain;
    for (brain, each) in [(free, 3), (Brain::that_costs, 4)] {
        let more = commits_of(8, brain).await - commits_of(2, brain).await;
        // Six turns more. A task of the heartbeat may write, too, or with one of them.
        assert!((6 * each - 5..6 * each + 6).contains(&more), "{each}: {more}");
    }
}

#[tokio::test]
async fn a_model_that_does_not_answer_loses_no_message() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    store.receive(Labelled::new(Label::Creator, "creator", "Still there?"), None).await.unwrap();
    let moves = [Move::Fail, Move::Fail, Move::Fail, Move::Fail, Move::Fail];
    let brain = Arc::new(Brain::new(8192, &moves, Move::Say("Yes.")));
    let (_, events) = lives(&home, &store, &brain, 1).await;
    assert_eq!(stops(&events)[0], StopReason::Errors);
    let turns = home.turns();
    assert_eq!(turns.len(), 1, "failed turns are not in the record");
    assert_eq!(turns[0].inputs.iter().filter(|input| input.said.text == "Still there?").count(), 1);
    assert_eq!(home.reader().inbox_counts().unwrap().processed, 1);
}

#[tokio::test]
async fn a_message_that_the_server_always_rejects_fails_alone() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    for text in ["first", "poison", "last"] {
        store.receive(Labelled::new(Label::Creator, "creator", text), None).await.unwrap();
    }
    let brain = Arc::new(Brain::new(8192, &[], Move::Say("Yes.")).that_rejects("poison"));
    let (_, events) = lives(&home, &store, &brain, 4).await;
    let counts = home.reader().inbox_counts().unwrap();
    assert_eq!((counts.received, counts.processed, counts.failed), (0, 2, 1));
    let failed = events.iter().filter(|event| matches!(event, Event::MessageFailed { .. }));
    assert_eq!(failed.count(), 1);
}

#[tokio::test]
async fn a_server_that_rejects_everything_costs_no_message() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    store.receive(Labelled::new(Label::Creator, "creator", "Hello"), None).await.unwrap();
    // The rules stand in every prompt.
    let brain = Arc::new(Brain::new(8192, &[], Move::Say("Yes.")).that_rejects("automaton"));
    let span = std::time::Duration::from_millis(700);
    let lived = tokio::time::timeout(span, lives(&home, &store, &brain, 1)).await;
    assert!(lived.is_err(), "no turn was committed");
    assert!(brain.seen().len() > 3, "{}", brain.seen().len());
    assert_eq!(home.reader().inbox_counts().unwrap().failed, 0);
}

#[tokio::test]
async fn what_the_creator_said_while_the_model_failed_is_told_later() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let words = Labelled::new(Label::Creator, "creator", "Look at the ledger.");
    let wake = WakeCause { source: WakeSource::Manual, reason: words };
    store.push_wake(wake).await.unwrap();
    let moves = [Move::Fail, Move::Fail, Move::Fail, Move::Fail, Move::Fail];
    let brain = Arc::new(Brain::new(8192, &moves, Move::Say("Yes.")));
    let (_, events) = lives(&home, &store, &brain, 1).await;
    assert_eq!(stops(&events)[0], StopReason::Errors);
    let told = home.turns()[0].inputs.iter().any(|input| input.said.text == "Look at the ledger.");
    assert!(told, "{:?}", home.turns()[0].inputs);
    assert!(home.reader().pending_wakes().unwrap().is_empty(), "told once");
}

#[tokio::test]
async fn a_command_without_a_sandbox_is_refused_and_not_run_elsewhere() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let proof = home.path().join("proof");
    let command = format!("touch {}", proof.display());
    let moves = [Move::Call(vec![("exec", json!({ "command": command }))])];
    let brain = Arc::new(Brain::new(8192, &moves, Move::Say("Fine.")));
    lives(&home, &store, &brain, 1).await;
    let call = home.turns()[0].calls[0].clone();
    assert_eq!(call.status, CallStatus::Failed);
    assert!(!proof.exists(), "the command ran on the host");
}

#[tokio::test]
async fn endless_text_and_silence_end_the_wake() {
    let home = Home::new();
    let store = home.store(Arc::new(NoFaults)).await;
    let moves = [Move::Babble, Move::Nothing, Move::Babble];
    let brain = Arc::new(Brain::new(8192, &moves, Move::Say("Fine.")));
    let (_, events) = lives(&home, &store, &brain, 3).await;
    assert_eq!(stops(&events), [StopReason::Idle]);
}
