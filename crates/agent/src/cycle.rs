//! One wake cycle: turns until there is a reason to stop.
//!
//! Every stop has a stated reason, in the record, in the next prompt and, where it is
//! the creator's to know, in a message. A failed turn keeps what it was told, and its
//! messages go back to the inbox; the next attempt waits longer each time. A cycle must
//! never end without being closed in the store.

use automaton_core::error::{Classified, chain};
use automaton_core::event::Event;
use automaton_core::id::{SessionId, TurnId};
use automaton_core::inference_budget::{InferenceCeilings, OverCeiling};
use automaton_core::model::InferenceTask;
use automaton_core::money::Microcents;
use automaton_core::record::{StopReason, WakeCause};
use automaton_core::state::AgentState;
use automaton_core::stop::ExhaustedLimit;
use automaton_core::time::{DAY, Span};
use automaton_core::trust::Label;
use automaton_inference::{ModelIndex, ModelPrices};
use automaton_policy::budget::{self, HAND_OVER_FROM};
use automaton_store::WakeSnapshot;

use crate::cycle_outcome::{self, CycleOutcome};
use crate::error::AgentError;
use crate::governor::{Governor, NextAction};
use crate::metered::NotAnswered;
use crate::money;
use crate::survival;
use crate::turn::{self, AgentContext, ClaimLimit, TurnFailure, TurnOutcome, WakeContext};
use crate::wake::wake_inputs;
use crate::wake_limits::{TurnAllowance, WakeLimit, WakeLimits, WakeUsage, WarningFlags};

/// The rest after a ceiling that no time alone lifts.
const REST_AFTER_CEILING: Span = Span::from_secs(3600);

/// Reason for a missing hand-over.
const NO_ROOM: &str = "it left no room for a turn to hand over in";

/// Note for the last turn of a run with a number of turns.
const LAST_STARTED: &str = "This is the last of the {of} turns for which you were started. Its calls \
    run, and you see their results when you are started again. Finish what can be finished, and \
    say what is done and what is next.";

/// End of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CycleEnd {
    /// Turns that were committed.
    pub(crate) turns: u32,
    /// Messages that the next turn may claim.
    pub(crate) claim: ClaimLimit,
    /// True if its creator caused it.
    pub(crate) creators: bool,
}

/// A cycle that goes on.
pub(crate) struct Cycle<'a> {
    pub(crate) ctx: &'a AgentContext,
    governor: Governor,
    /// Input of the next turn.
    pub(crate) wake: WakeContext,
    /// Turns that this start may still commit.
    left: Option<u32>,
    /// The bound before which the next turn is the last, and what it is told of that.
    last: Option<(WakeLimit, String)>,
    /// Which bounds the model was told of.
    told: WarningFlags,
    /// True if it was told of open messages before it sleeps.
    reminded: bool,
    /// State of the wake, as read with the end of the last turn.
    snapshot: Option<WakeSnapshot>,
}

/// Runs one cycle.
pub(crate) async fn run(
    ctx: &AgentContext,
    causes: Vec<WakeCause>,
    left: Option<u32>,
    claim: ClaimLimit,
) -> Result<CycleEnd, AgentError> {
    // An interruption is of the wake in which it came; the end of the process stays.
    ctx.interrupt.send_modify(|interrupted| *interrupted = *ctx.shutdown.borrow());
    let mut cycle = Cycle::begin(ctx, &causes, left, claim).await?;
    let end = loop {
        if let Some(end) = cycle.before_turn().await? {
            break end;
        }
        let ended = match turn::run_turn(ctx, cycle.next()).await? {
            Ok(finished) => cycle.after_turn(finished).await?,
            Err(failure) => cycle.after_failure(failure).await?,
        };
        if let Some(end) = ended {
            break end;
        }
    };
    let end = match money::stop_loss_reached(ctx).await? {
        // However the cycle ended, the next one is not its own to begin.
        Some(lost) => CycleOutcome {
            why: Some(lost.clone()),
            note: Some(lost),
            ..CycleOutcome::stop(StopReason::StopLoss, None)
        },
        None => end,
    };
    let turns = cycle.governor.turns();
    let unstopped =
        if cycle.left == Some(0) { StopReason::TurnsUsed } else { StopReason::Shutdown };
    cycle_outcome::close(&cycle, end, turns, unstopped).await?;
    Ok(CycleEnd { turns, claim: cycle.wake.claim, creators: cycle.wake.creators })
}

/// Opens the session and brings the state to running.
async fn open(ctx: &AgentContext, causes: &[WakeCause]) -> Result<SessionId, AgentError> {
    let store = &ctx.deps.store;
    let before = store.life().await?.state;
    let session = store.open_session(causes.to_vec()).await?;
    ctx.handles.workspace.snapshots().begin_wake();
    tell_change(ctx, before, AgentState::Waking, "a wake cycle begins");
    ctx.deps.emit(Event::WakeStarted { session, causes: causes.to_vec() });
    let from = AgentState::Waking;
    let to = AgentState::Running;
    store.transition(from, to, "awake").await?;
    tell_change(ctx, from, to, "awake");
    Ok(session)
}

pub(crate) fn tell_change(ctx: &AgentContext, from: AgentState, to: AgentState, reason: &str) {
    if from != to {
        ctx.deps.emit(Event::StateChanged { from, to, reason: reason.to_owned() });
    }
}

impl<'a> Cycle<'a> {
    async fn begin(
        ctx: &'a AgentContext,
        causes: &[WakeCause],
        left: Option<u32>,
        claim: ClaimLimit,
    ) -> Result<Self, AgentError> {
        let session = open(ctx, causes).await?;
        let snapshot = ctx.deps.store.wake_snapshot(money::wake_query(ctx)).await?;
        let vitals = snapshot.vitals;
        let wake = WakeContext {
            session,
            told: wake_inputs(ctx, causes).await?,
            wake_turn: 1,
            wake_turns: ctx.settings.limits.turns_per_wake,
            creators: false,
            nudge: None,
            last: false,
            most: Microcents::ZERO,
            claim,
            heard: Label::Creator,
            balances: None,
            model: ctx.deps.thinker(&vitals),
            tier: vitals.tier(),
            vitals,
            spend: snapshot.spend,
        };
        let governor = Governor::new(ctx.settings.limits);
        let last = None;
        let told = WarningFlags::default();
        let reminded = false;
        let snapshot = Some(snapshot);
        Ok(Self { ctx, governor, wake, left, last, told, reminded, snapshot })
    }

    /// Returns the current limits of the wake. A message of the creator in the middle of it
    /// changes them.
    pub(crate) fn bounds(&self) -> WakeLimits {
        let AgentContext { settings, deps, .. } = self.ctx;
        let model = deps.model(self.wake.model);
        let creators = self.wake.creators;
        let costs = model.prices != ModelPrices::default();
        let turns = settings.limits.turns_of(creators, &model);
        let envelope = settings.budgets.envelope_for(creators);
        let mut budgets = settings.budgets;
        let goes_on_for_free = |at: &ModelIndex| {
            let model = deps.model(*at);
            model.prices == ModelPrices::default() && !model.weak
        };
        // Where one that is free can go on, a ceiling ends no wake: it leaves out those that cost.
        let route = deps.route(InferenceTask::AgentTurn, &self.wake.vitals);
        if route.models.iter().any(goes_on_for_free) {
            budgets.ceilings = InferenceCeilings::default();
        }
        WakeLimits { turns, costs, envelope, budgets }
    }

    pub(crate) async fn used(&self) -> Result<WakeUsage, AgentError> {
        let store = &self.ctx.deps.store;
        let turns = self.governor.turns();
        if !self.bounds().costs {
            return Ok(WakeUsage { turns, ..WakeUsage::default() });
        }
        let unattended = store.unattended_usage().await?;
        let spend = store.thinking_cost().await?;
        Ok(WakeUsage { turns, unattended, spend, most: self.wake.most })
    }

    /// The same as it was read.
    fn used_at(&self, snapshot: &WakeSnapshot) -> WakeUsage {
        let turns = self.governor.turns();
        let most = self.wake.most;
        let WakeSnapshot { unattended, spend, .. } = *snapshot;
        match self.bounds().costs {
            true => WakeUsage { turns, unattended, spend, most },
            false => WakeUsage { turns, ..WakeUsage::default() },
        }
    }

    /// Looks at everything that may end the cycle before its next turn.
    async fn before_turn(&mut self) -> Result<Option<CycleOutcome>, AgentError> {
        let ctx = self.ctx;
        let read = match self.snapshot.take() {
            Some(read) => read,
            None => ctx.deps.store.wake_snapshot(money::wake_query(ctx)).await?,
        };
        let over = *ctx.shutdown.borrow() || self.left == Some(0);
        if over || ctx.settings.budgets.stop_loss.first_reached(&read.losses).is_some() {
            return Ok(Some(CycleOutcome::default()));
        }
        if *ctx.interrupt.borrow() {
            return Ok(Some(CycleOutcome::stop(StopReason::Interrupted, None)));
        }
        self.wake.creators = read.creators;
        let bounds = self.bounds();
        let used = self.used_at(&read);
        self.last = match bounds.stage(&used) {
            TurnAllowance::Room => None,
            TurnAllowance::Last(bound) => Some((bound, bounds.hand_over(bound, &used))),
            TurnAllowance::Over(bound) => {
                let why = (used.turns > 0).then(|| NO_ROOM.to_owned());
                return Ok(Some(CycleOutcome { why, ..self.end_at(bound).await? }));
            }
        };
        let mut vitals = read.vitals;
        if let Some(balances) = money::check_balances(ctx).await {
            let noted = survival::note(&ctx.deps, &balances, Some(vitals)).await?;
            money::sync_state(&ctx.deps, &balances, noted.as_ref(), read.state).await?;
            self.wake.balances = Some(balances);
            vitals = noted.unwrap_or(vitals);
        }
        (self.wake.model, self.wake.tier) = (ctx.deps.thinker(&vitals), vitals.tier());
        (self.wake.vitals, self.wake.spend) = (vitals, read.spend);
        if survival::cannot_pay(&ctx.deps, &vitals) {
            return Ok(Some(CycleOutcome::stop(StopReason::Broke, None)));
        }
        self.wake.wake_turns = bounds.turns;
        ctx.handles.life.set_turns_left(bounds.turns.saturating_sub(used.turns));
        if let Some(warning) = bounds.warn(&used, &mut self.told) {
            self.add_note(&warning);
        }
        Ok(None)
    }

    /// Adds a sentence for the next turn; it stays until that is committed.
    fn add_note(&mut self, text: &str) {
        let said = self.wake.nudge.take().map_or_else(String::new, |said| said + "\n");
        self.wake.nudge = Some(said + text);
    }

    /// Returns the input of the next turn. The last turn claims no message, since it could not
    /// work on it.
    fn next(&self) -> WakeContext {
        let mut wake = self.wake.clone();
        match &self.last {
            None => {
                let said = [wake.nudge.take(), self.turn_limit_notice()].into_iter().flatten();
                wake.nudge = said.reduce(|said, more| said + "\n" + &more);
                wake
            }
            Some((_, text)) => WakeContext {
                nudge: Some(text.clone()),
                last: true,
                claim: ClaimLimit::None,
                ..wake
            },
        }
    }

    /// Returns the note about the number of turns, at four fifths of them and at the last. The
    /// last turn keeps its tools: the number is a person's measure of work, and the next start
    /// continues.
    fn turn_limit_notice(&self) -> Option<String> {
        let of = self.ctx.settings.pace.turns_max?;
        let left = self.left?;
        let nearly = |used: u32| budget::is_nearly(used.into(), of.into());
        let used = of.saturating_sub(left);
        if left == 1 && of > 1 {
            return Some(LAST_STARTED.replace("{of}", &of.to_string()));
        }
        let now = of >= HAND_OVER_FROM && nearly(used) && !nearly(used.saturating_sub(1));
        now.then(|| {
            format!("{used} of the {of} turns for which you were started are used. Do what matters most.")
        })
    }

    /// Prepares the next turn, or gives the end of the cycle.
    async fn after_turn(
        &mut self,
        finished: TurnOutcome,
    ) -> Result<Option<CycleOutcome>, AgentError> {
        let TurnOutcome { summary, note, heard, thought, most, snapshot } = finished;
        self.snapshot = Some(snapshot);
        self.left = self.left.map(|left| left.saturating_sub(1));
        (self.wake.heard, self.wake.most) = (heard, most);
        let next = self.governor.after_turn(&summary);
        if let Some((bound, _)) = self.last {
            let handed_over = Some(thought).filter(|text| !text.trim().is_empty());
            return Ok(Some(CycleOutcome { handed_over, ..self.end_at(bound).await? }));
        }
        self.wake.claim = self.wake.claim.after_answer(summary.answered);
        self.wake.nudge = match next {
            NextAction::Continue { nudge } => nudge,
            NextAction::Stop(stop) => match self.unanswered_reminder(stop.reason).await? {
                None => {
                    let why = summary.fault.map(|fault| fault.for_creator().to_owned());
                    return Ok(Some(CycleOutcome {
                        stop: Some(stop),
                        note,
                        why,
                        ..CycleOutcome::default()
                    }));
                }
                reminder => reminder,
            },
        };
        self.wake.told.clear();
        self.wake.wake_turn = self.governor.turns() + 1;
        Ok(None)
    }

    /// Returns the reminder, once a wake, before it sleeps while its creator's message is open.
    async fn unanswered_reminder(
        &mut self,
        reason: StopReason,
    ) -> Result<Option<String>, AgentError> {
        use StopReason::{Asked, Blocked, Idle, Repetition};
        let sleeps = matches!(reason, Asked | Blocked | Idle | Repetition);
        if !sleeps || !self.wake.creators || self.reminded || self.left == Some(0) {
            return Ok(None);
        }
        self.reminded = true;
        let open = cycle_outcome::open(self.ctx).await?;
        let Some(newest) = open.last() else { return Ok(None) };
        let ids: Vec<String> = open.iter().map(|message| message.id.to_string()).collect();
        Ok(Some(format!(
            "You are still awake, since your creator waits for an answer: open is {}. Answer with \
             `send_message` and `reply_to` ({}), go on with the work, or say why you cannot. If \
             you sleep now, your creator is told that it is open.",
            ids.join(", "),
            newest.id
        )))
    }

    /// The end at a bound.
    async fn end_at(&self, bound: WakeLimit) -> Result<CycleOutcome, AgentError> {
        let bounds = self.bounds();
        let used = self.used().await?;
        let used_up = bounds.used_up(bound, &used);
        let limits = &self.ctx.settings.limits;
        let (stop, note) = match bound {
            WakeLimit::Turns => {
                (CycleOutcome::stop(StopReason::TurnLimit, Some(limits.rest_after_turns)), None)
            }
            WakeLimit::Envelope => {
                let thought = budget::EnvelopeExhaustion::new(used.unattended);
                (
                    CycleOutcome::stop(StopReason::Envelope, Some(thought.rest)),
                    Some(thought.to_string()),
                )
            }
            WakeLimit::Ceiling(scope) => {
                let mut each = bounds.budgets.ceilings.each(&used.spend);
                let found = each.find(|(of, ..)| *of == scope);
                let (_, spent, limit) = found.unwrap_or((scope, used.most, used.most));
                let over = OverCeiling { scope, spent, most: used.most, limit };
                return self.without_budget(None, over).await;
            }
        };
        Ok(CycleOutcome { used_up: Some(used_up), note, ..stop })
    }

    /// Tells that an answer is not affordable, and when it will be.
    async fn without_budget(
        &self,
        turn: Option<TurnId>,
        over: OverCeiling,
    ) -> Result<CycleOutcome, AgentError> {
        let deps = &self.ctx.deps;
        let sleep = match over.scope.window() {
            None => REST_AFTER_CEILING,
            Some(window) => {
                let room = deps.store.thinking_room(window, over.room()).await?;
                room.map_or(DAY, |room| room.since(deps.ids.now()).min(DAY))
            }
        };
        let failure = NotAnswered::OverCeiling(over);
        let kind = failure.kind();
        let error = failure.to_string();
        if let Some(turn) = turn {
            let retry_ms = Some(sleep.as_millis());
            let hint = failure.hint();
            deps.emit(Event::TurnFailed { turn, kind, error: error.clone(), hint, retry_ms });
        }
        let used_up = Some(ExhaustedLimit::Ceiling(over.scope, over.spent, over.limit));
        let why = Some(format!("the next answer may cost {}", over.most));
        Ok(CycleOutcome {
            used_up,
            why,
            note: Some(error),
            ..CycleOutcome::stop(StopReason::Budget, Some(sleep))
        })
    }

    /// Decides how the cycle goes on after a failed turn.
    async fn after_failure(
        &mut self,
        failure: TurnFailure,
    ) -> Result<Option<CycleOutcome>, AgentError> {
        let TurnFailure { turn, error } = failure;
        match &error {
            // What it was interrupted for is seen before the next turn.
            NotAnswered::Interrupted => return Ok(None),
            NotAnswered::OverCeiling(over) => {
                let end = self.without_budget(turn, *over).await?;
                let why = if self.last.is_some() { Some(NO_ROOM.to_owned()) } else { end.why };
                return Ok(Some(CycleOutcome { why, ..end }));
            }
            error if error.is_broke() => survival::refused(&self.ctx.deps).await?,
            _ => {}
        }
        if error.is_rejection() {
            self.wake.claim = self.wake.claim.after_rejection();
        }
        let verdict = self.governor.after_error(error.tries_max(), error.asked_wait());
        let retry_ms = verdict.as_ref().ok().map(|wait| wait.as_millis());
        let kind = error.kind();
        let text = chain(&error).to_string();
        let hint = error.hint();
        let note = error.note();
        let why = note.clone().or_else(|| Some(text.clone()));
        self.ctx.deps.emit(match turn {
            Some(turn) => Event::TurnFailed { turn, kind, error: text, hint, retry_ms },
            None => Event::ErrorReported { kind, error: text, hint },
        });
        match verdict {
            Ok(wait) => {
                rest(self.ctx, wait).await;
                Ok(None)
            }
            Err(stop) => {
                Ok(Some(CycleOutcome { stop: Some(stop), note, why, ..CycleOutcome::default() }))
            }
        }
    }
}

/// Waits, unless what is under way should be given up.
async fn rest(ctx: &AgentContext, span: Span) {
    tokio::select! {
        biased;
        // Both arms are cancel-safe.
        () = ctx.interrupted() => {}
        () = tokio::time::sleep(span.to_std()) => {}
    }
}
