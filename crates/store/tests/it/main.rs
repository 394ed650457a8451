//! The store on real files: each repository, crashes, damage, concurrency.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod alerts;
mod approvals;
mod audit;
mod call_texts;
mod conversation;
mod crashes;
mod egress;
mod hibernation;
mod inbox;
mod ledger;
mod life;
mod memory;
mod open;
mod opening;
mod payments;
mod rates;
mod retention;
mod rows;
mod sales;
mod schedule;
mod schema;
mod soul;
mod turns;
mod vectors;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use automaton_core::entropy::Entropy;
use automaton_core::faults::{FaultPoint, Faults};
use automaton_core::id::{CallId, IdGenerator, SessionId, TurnId};
use automaton_core::intent::Intent;
use automaton_core::memory::MemoryQuery;
use automaton_core::message::CLAIMED_PER_TURN_MAX;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::payment::{Money, NewPayment, PaymentReason, Purpose};
use automaton_core::record::{
    Authority, CallStatus, DecisionOutcome, FinishedCall, Usage, WakeCause, WakeSource,
};
use automaton_core::time::{Clock, Span, Timestamp};
use automaton_core::tool::{Effect, Risk};
use automaton_core::trust::{Label, Labelled};
use automaton_store::{
    ClaimOptions, DecisionContext, Hash, JudgedCall, Judgement, NewAutomaton, NewDecision,
    OutgoingMessage, RateLimit, Reader, StartedTurn, Store, StoreError, TurnRequest, WakeQuery,
};

/// A clock that stands still until it is told to go.
#[derive(Default)]
struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// Counts instead of drawing, so that no two ids are equal.
#[derive(Default)]
struct Counter(AtomicU64);

impl Entropy for Counter {
    fn fill(&self, bytes: &mut [u8]) {
        let drawn = self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes();
        let end = bytes.len();
        bytes[end - 8..].copy_from_slice(&drawn);
    }
}

/// Kills the writer thread at a point, as the death of the process would.
#[derive(Default)]
struct Trap {
    armed: Mutex<Option<FaultPoint>>,
    reached: Mutex<Vec<FaultPoint>>,
}

impl Faults for Trap {
    fn reach(&self, point: FaultPoint) {
        self.reached.lock().unwrap().push(point);
        let mut armed = self.armed.lock().unwrap();
        if *armed == Some(point) {
            *armed = None;
            drop(armed);
            panic!("killed at {point}");
        }
    }
}

/// Single steps of a turn, which are parts of jobs otherwise.
trait Steps {
    async fn start_call(&self, call: CallId) -> Result<(), StoreError>;
    async fn finish_call(
        &self,
        call: CallId,
        status: CallStatus,
        result: Labelled,
        duration: Span,
    ) -> Result<(), StoreError>;
    async fn commit_turn(&self, turn: TurnId) -> Result<Option<OutgoingMessage>, StoreError>;
    async fn start(
        &self,
        session: SessionId,
        limits: Vec<RateLimit>,
    ) -> Result<StartedTurn, StoreError>;
}

impl Steps for Store {
    async fn start_call(&self, call: CallId) -> Result<(), StoreError> {
        self.step_calls(Vec::new(), Some((call, Effect::Mutates))).await
    }

    async fn finish_call(
        &self,
        call: CallId,
        status: CallStatus,
        result: Labelled,
        duration: Span,
    ) -> Result<(), StoreError> {
        let ended = FinishedCall::by_runtime(call, status, "");
        let exit_code = (status == CallStatus::Done).then_some(3);
        let ended = FinishedCall { result, duration, exit_code, ..ended };
        self.step_calls(vec![ended], None).await
    }

    async fn commit_turn(&self, turn: TurnId) -> Result<Option<OutgoingMessage>, StoreError> {
        let (query, none) = (WakeQuery::default(), Vec::new());
        Ok(self.finish_turn(turn, Vec::new(), none, query).await?.0)
    }

    async fn start(
        &self,
        session: SessionId,
        limits: Vec<RateLimit>,
    ) -> Result<StartedTurn, StoreError> {
        let request = TurnRequest {
            session,
            told: Vec::new(),
            claims: ClaimOptions { most: 10, only: None },
            history_from: 0,
            turns_max: 10,
            recall: |_, _| MemoryQuery { limit: 9, ..MemoryQuery::default() },
            recalled: None,
            limits,
        };
        self.start_turn(request).await
    }
}

/// A database in a directory of its own.
struct World {
    home: tempfile::TempDir,
    clock: Arc<TestClock>,
    trap: Arc<Trap>,
    ids: IdGenerator,
    store: Store,
}

impl World {
    /// An automaton that was just born.
    async fn born() -> Self {
        let world = Self::unborn();
        world.store.birth(newborn()).await.unwrap();
        world
    }

    fn unborn() -> Self {
        let home = tempfile::tempdir().unwrap();
        let clock = Arc::new(TestClock(AtomicI64::new(1_000_000)));
        let trap = Arc::new(Trap::default());
        let ids = IdGenerator::new(clock.clone(), Arc::new(Counter::default()));
        let store = Store::open(&home.path().join("state.db"), ids.clone(), trap.clone()).unwrap();
        Self { home, clock, trap, ids, store }
    }

    fn path(&self) -> PathBuf {
        self.home.path().join("state.db")
    }

    fn open(&self) -> Store {
        Store::open(&self.path(), self.ids.clone(), self.trap.clone()).unwrap()
    }

    /// Forgets the handle without closing it, as a crash would, and opens anew.
    fn crash(&mut self) {
        self.store = self.open();
    }

    fn reader(&self) -> Reader {
        Reader::open(&self.path()).unwrap()
    }

    /// A connection that keeps no rule of the store, for tampering and looking.
    fn raw(&self) -> rusqlite::Connection {
        let connection = raw(&self.path());
        connection.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
        connection
    }

    fn advance(&self, millis: i64) {
        self.clock.0.fetch_add(millis, Ordering::SeqCst);
    }

    async fn session(&self) -> SessionId {
        self.store.open_session(vec![manual("go")]).await.unwrap()
    }

    /// The cycle that is still open.
    fn last_session(&self) -> SessionId {
        let open = "SELECT id FROM sessions WHERE ended_at IS NULL";
        self.raw().query_row(open, [], |row| row.get::<_, String>(0)).unwrap().parse().unwrap()
    }

    /// A turn that was judged with these calls.
    async fn judged(&self, session: SessionId, calls: Vec<JudgedCall>) -> TurnId {
        let turn =
            self.store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await.unwrap().id;
        self.store.record_judgement(judgement(turn, calls), None).await.unwrap();
        turn
    }

    /// A turn that was judged, whose words end its wake.
    async fn spoken(&self, session: SessionId, words: &str) -> TurnId {
        let turn =
            self.store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await.unwrap().id;
        let (thought, voice) = (words.to_owned(), Some(Label::Own));
        let judgement = Judgement { thought, voice, ..judgement(turn, Vec::new()) };
        self.store.record_judgement(judgement, None).await.unwrap();
        turn
    }

    /// A turn that answers what waits, and calls nothing.
    async fn answer(&self, session: SessionId) -> TurnId {
        let turn = self.judged(session, Vec::new()).await;
        self.store.commit_turn(turn).await.unwrap();
        turn
    }

    fn planned(&self) -> JudgedCall {
        planned(self.ids.id())
    }
}

#[expect(clippy::disallowed_methods, reason = "an attacker opens the file as he likes")]
fn raw(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}

fn newborn() -> NewAutomaton {
    NewAutomaton {
        name: "Ada".to_owned(),
        genesis_sha256: Hash::of(b"live"),
        constitution_sha256: Hash::of(b"law"),
    }
}

fn manual(reason: &str) -> WakeCause {
    WakeCause { source: WakeSource::Manual, reason: Labelled::new(Label::Creator, "cli", reason) }
}

/// Credits for $5, to be paid in USDC.
fn five_dollars() -> NewPayment {
    NewPayment {
        purpose: Purpose::TopUp,
        request: "top_up".to_owned(),
        origin: "https://cloud.example".to_owned(),
        payee: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".parse().unwrap(),
        money: Money::Usdc {
            chain: 8453,
            asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913".parse().unwrap(),
            payer: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266".parse().unwrap(),
            amount: MicroUsdc::new(5_000_000),
        },
        why: PaymentReason::auto_topup("credits for $5"),
    }
}

fn said(text: &str) -> Labelled {
    Labelled::new(Label::Creator, "cli", text)
}

fn output(text: &str) -> Labelled {
    Labelled::new(Label::Tool, "exec", text)
}

fn usage() -> Usage {
    Usage {
        model: "test-model".to_owned(),
        prompt_tokens: 10,
        cached_tokens: 4,
        completion_tokens: 5,
        cost: Microcents::new(7),
        estimated: false,
        first_token_ms: 1,
        total_ms: 2,
        unknown_end: Some("odd".to_owned()),
    }
}

fn judgement(turn: TurnId, calls: Vec<JudgedCall>) -> Judgement {
    Judgement { turn, thought: "I think".to_owned(), voice: None, usage: usage(), calls }
}

fn decision(outcome: DecisionOutcome) -> NewDecision {
    NewDecision {
        outcome,
        code: if outcome == DecisionOutcome::Allow { "ALLOWED" } else { "PATH_OUTSIDE" }.to_owned(),
        reason: "because".to_owned(),
        risk: Risk::Caution,
        rules_evaluated: vec!["path.workspace".to_owned(), "authority.input".to_owned()],
        rules_triggered: Vec::new(),
        under: DecisionContext {
            input: Label::Creator,
            heard: Label::Tool,
            authority: Authority::Own,
            approval: None,
            latency_ms: Span::from_millis(3).into(),
        },
    }
}

fn planned(id: CallId) -> JudgedCall {
    JudgedCall {
        id,
        tool: "exec".to_owned(),
        arguments: r#"{"command":"ls"}"#.to_owned(),
        args_hash: None,
        mutates: Effect::Mutates,
        status: CallStatus::Planned,
        result: None,
        decision: Some(decision(DecisionOutcome::Allow)),
        intents: vec![Intent::Exec { command: "ls".to_owned(), timeout_ms: 1000 }],
        limits: Vec::new(),
        question: None,
        approval: None,
    }
}

fn refused(id: CallId) -> JudgedCall {
    JudgedCall {
        status: CallStatus::Refused,
        result: Some(Labelled::new(Label::Own, "policy", "refused: because")),
        decision: Some(decision(DecisionOutcome::Deny)),
        ..planned(id)
    }
}

/// Whether what was asked does not fit, for this reason.
fn is_unfit<T>(result: &Result<T, StoreError>, reason: &str) -> bool {
    matches!(result, Err(StoreError::Unfit { why, .. }) if why == reason)
}

/// Whether the store's own rules refused, rather than SQLite or the thread.
fn is_refusal(error: &StoreError) -> bool {
    !matches!(error, StoreError::Database(_))
}
