//! Any sequence of what an agent does, with crashes anywhere, keeps the record.
//!
//! An agent that obeys the order of a turn, and now and then tries what it must
//! not, is driven by random steps. It dies by forgetting its handle or in the
//! writer thread right after a commit. After every recovery and at the end the
//! rows themselves are asked whether the promises hold.

use std::collections::{BTreeMap, BTreeSet};

use automaton_core::faults::FaultPoint;
use automaton_core::id::{CallId, MessageId, SessionId, TurnId};
use automaton_core::message::CLAIMED_PER_TURN_MAX;
use automaton_core::record::{CallStatus, SleepState, StopReason};
use automaton_core::time::{Clock, Span};
use automaton_store::{FailureCause, SqliteError, StoreError};
use proptest::prelude::*;

use crate::Steps as _;
use crate::{World, is_refusal, judgement, manual, output, planned, refused, said};

#[derive(Debug, Clone)]
enum Step {
    Receive(Option<u8>),
    Wake(u8),
    OpenSession,
    OpenTurn,
    Judge(Vec<bool>),
    Start,
    Finish(bool),
    Commit,
    Abandon(bool),
    Ingest,
    CloseSession,
    Pass(i64),
    Crash,
    Die(FaultPoint),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::option::of(0..6_u8).prop_map(Step::Receive),
        1 => (0..3_u8).prop_map(Step::Wake),
        4 => Just(Step::OpenSession),
        6 => Just(Step::OpenTurn),
        6 => prop::collection::vec(any::<bool>(), 0..4).prop_map(Step::Judge),
        8 => Just(Step::Start),
        8 => any::<bool>().prop_map(Step::Finish),
        6 => Just(Step::Commit),
        2 => any::<bool>().prop_map(Step::Abandon),
        3 => Just(Step::Ingest),
        1 => Just(Step::CloseSession),
        1 => prop_oneof![Just(10_i64), Just(4_000_000)].prop_map(Step::Pass),
        2 => Just(Step::Crash),
        3 => prop::sample::select(POINTS.to_vec()).prop_map(Step::Die),
    ]
}

const POINTS: [FaultPoint; 9] = [
    FaultPoint::MessageReceived,
    FaultPoint::SessionOpened,
    FaultPoint::TurnOpened,
    FaultPoint::JudgementStored,
    FaultPoint::CallStarted,
    FaultPoint::CallFinished,
    FaultPoint::TurnCommitted,
    FaultPoint::TurnIngested,
    FaultPoint::SleepStored,
];

/// What the driver remembers: where it stands, and what it was promised.
struct Driver {
    world: World,
    session: Option<SessionId>,
    turn: Option<TurnId>,
    claimed: Vec<MessageId>,
    calls: Vec<CallId>,
    running: Option<CallId>,
    promised: BTreeSet<MessageId>,
    started: BTreeMap<CallId, u32>,
    consumed: BTreeMap<i64, i64>,
}

impl Driver {
    async fn new() -> Self {
        Self {
            world: World::born().await,
            session: None,
            turn: None,
            claimed: Vec::new(),
            calls: Vec::new(),
            running: None,
            promised: BTreeSet::new(),
            started: BTreeMap::new(),
            consumed: BTreeMap::new(),
        }
    }

    async fn take(&mut self, step: Step) {
        match self.try_step(step).await {
            Ok(()) => {}
            Err(StoreError::Database(SqliteError::WriterGone { .. })) => self.crash().await,
            Err(error) => assert!(is_refusal(&error), "{error:?}"),
        }
    }

    async fn try_step(&mut self, step: Step) -> Result<(), StoreError> {
        let store = self.world.store.clone();
        match step {
            Step::Receive(key) => {
                let dedup = key.map(|key| format!("key {key}"));
                let id = store.receive(said("hello"), dedup.as_deref()).await?;
                self.promised.insert(id);
            }
            Step::Wake(number) => store.push_wake(manual(&format!("{number}"))).await?,
            Step::OpenSession => {
                let pending = store.pending_wakes().await?;
                let causes = pending.into_iter().map(|(_, cause)| cause).collect();
                self.session = Some(store.open_session(causes).await?);
            }
            Step::OpenTurn => {
                // A second turn at a time is what the store must stand, too.
                let Some(session) = self.session else { return Ok(()) };
                if self.turn.is_some() && !self.calls.is_empty() {
                    return Ok(());
                }
                let opened = store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await?;
                self.claimed = opened.messages.iter().map(|message| message.id).collect();
                self.turn = Some(opened.id);
            }
            Step::Judge(allowed) => self.judge(&allowed).await?,
            Step::Start => self.start().await?,
            Step::Finish(well) => self.finish(well).await?,
            Step::Commit => {
                let Some(turn) = self.turn else { return Ok(()) };
                store.commit_turn(turn).await?;
                store.commit_turn(turn).await?;
                self.turn = None;
            }
            Step::Abandon(blame) => {
                let Some(turn) = self.turn else { return Ok(()) };
                let blame = match self.claimed.first() {
                    Some(message) if blame => FailureCause::Message(*message),
                    _ => FailureCause::Turn,
                };
                store.abandon_turn(turn, blame).await?;
                self.turn = None;
            }
            Step::Ingest => {
                for turn in store.owed_ingests().await? {
                    store.ingest_turn(turn, Vec::new()).await?;
                }
            }
            Step::CloseSession => {
                let Some(session) = self.session else { return Ok(()) };
                let now = self.world.clock.now();
                let sleep = SleepState { since: now, until: Some(now), reason: StopReason::Asked };
                store.close_session(session, StopReason::Asked, Some(sleep), None).await?;
                self.session = None;
                self.turn = None;
            }
            Step::Pass(millis) => self.world.advance(millis),
            Step::Crash => self.crash().await,
            Step::Die(point) => *self.world.trap.armed.lock().unwrap() = Some(point),
        }
        Ok(())
    }

    async fn judge(&mut self, allowed: &[bool]) -> Result<(), StoreError> {
        let Some(turn) = self.turn else { return Ok(()) };
        let mut judged = Vec::new();
        for allowed in allowed {
            let id = self.world.ids.id();
            judged.push(if *allowed { planned(id) } else { refused(id) });
        }
        let calls = judged.iter().filter(|call| call.status == CallStatus::Planned);
        let calls: Vec<_> = calls.map(|call| call.id).collect();
        self.world.store.record_judgement(judgement(turn, judged), None).await?;
        self.calls = calls;
        self.running = None;
        Ok(())
    }

    /// Starts the first call that has not ended, even when it has started: then
    /// the store must refuse.
    async fn start(&mut self) -> Result<(), StoreError> {
        let Some(call) = self.calls.first().copied() else { return Ok(()) };
        let started = self.world.store.start_call(call).await;
        if !started.as_ref().is_err_and(is_refusal) {
            *self.started.entry(call).or_default() += 1;
        }
        started?;
        self.running = Some(call);
        Ok(())
    }

    /// Ends the first call; "done" without a start is what the store must refuse.
    async fn finish(&mut self, well: bool) -> Result<(), StoreError> {
        let Some(call) = self.calls.first().copied() else { return Ok(()) };
        let status = match (self.running == Some(call), well) {
            (true, true) | (false, false) => CallStatus::Done,
            (true, false) => CallStatus::Failed,
            (false, true) => CallStatus::Skipped,
        };
        self.world.store.finish_call(call, status, output("out"), Span::ZERO).await?;
        self.calls.remove(0);
        self.running = None;
        Ok(())
    }

    async fn crash(&mut self) {
        *self.world.trap.armed.lock().unwrap() = None;
        self.world.crash();
        let recovered = self.world.store.recover().await.unwrap();
        assert!(recovered.unknown <= 1, "{recovered:?}");
        (self.session, self.turn, self.running) = (None, None, None);
        (self.calls, self.claimed) = (Vec::new(), Vec::new());
        for (what, rows) in [
            ("unfinished turns", "turns WHERE status IN ('open', 'judged')"),
            ("unfinished calls", "tool_calls WHERE status IN ('planned', 'started')"),
            ("claimed messages", "inbox_messages WHERE state = 'in_progress'"),
            ("open sessions", "sessions WHERE ended_at IS NULL"),
        ] {
            assert_eq!(self.count(rows), 0, "{what} after recovery");
        }
        self.check().await;
    }

    fn count(&self, rows: &str) -> i64 {
        let statement = format!("SELECT count(*) FROM {rows}");
        self.world.raw().query_row(&statement, [], |row| row.get(0)).unwrap()
    }

    /// What must hold at every moment.
    async fn check(&mut self) {
        let report = self.world.store.verify_chain().await.unwrap();
        assert!(report.is_whole(), "{report:?}");
        self.check_messages();
        self.check_calls();
        self.check_wakes();
        let committed = self.count("turns WHERE status = 'committed'");
        let life = self.world.store.life().await.unwrap();
        assert_eq!(life.turns, committed.unsigned_abs());
    }

    /// No promised message is lost; what is processed was answered by exactly
    /// one committed turn, and what is not by none.
    fn check_messages(&self) {
        let raw = self.world.raw();
        let statement = "SELECT m.id, m.state, count(t.id) FROM inbox_messages AS m \
            LEFT JOIN turn_inputs AS i ON i.message = m.seq \
            LEFT JOIN turns AS t ON t.seq = i.turn AND t.status = 'committed' GROUP BY m.id";
        let mut statement = raw.prepare(statement).unwrap();
        let mut rows = statement.query([]).unwrap();
        let mut found = BTreeSet::new();
        while let Some(row) = rows.next().unwrap() {
            let id: String = row.get(0).unwrap();
            let (state, answers): (String, i64) = (row.get(1).unwrap(), row.get(2).unwrap());
            assert_eq!(answers, i64::from(state == "processed"), "{id} is {state}");
            found.insert(id.parse::<MessageId>().unwrap());
        }
        assert!(self.promised.is_subset(&found), "a message was lost");
    }

    /// A call that ran was started once, by the driver, after it was allowed.
    fn check_calls(&self) {
        assert!(self.started.values().all(|times| *times == 1), "a call was started twice");
        let raw = self.world.raw();
        let statement = "SELECT c.id FROM tool_calls AS c WHERE c.started_at IS NOT NULL";
        let mut statement = raw.prepare(statement).unwrap();
        let ran = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        for id in ran {
            assert!(self.started.contains_key(&id.unwrap().parse::<CallId>().unwrap()));
        }
        let unallowed = "tool_calls AS c WHERE c.started_at IS NOT NULL AND NOT EXISTS \
            (SELECT 1 FROM policy_decisions AS d WHERE d.call = c.id AND d.outcome = 'allow')";
        assert_eq!(self.count(unallowed), 0, "an effect without a decision");
    }

    /// An event that a session consumed is never consumed by another.
    fn check_wakes(&mut self) {
        let raw = self.world.raw();
        let statement = "SELECT seq, session FROM wake_events WHERE session IS NOT NULL";
        let mut statement = raw.prepare(statement).unwrap();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let (seq, session): (i64, i64) = (row.get(0).unwrap(), row.get(1).unwrap());
            let before = self.consumed.entry(seq).or_insert(session);
            assert_eq!(*before, session, "the event {seq} was consumed twice");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_life_with_crashes_keeps_its_record(steps in prop::collection::vec(step(), 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut driver = Driver::new().await;
            for step in steps {
                driver.take(step).await;
            }
            driver.check().await;
            driver.crash().await;
        });
    }
}
