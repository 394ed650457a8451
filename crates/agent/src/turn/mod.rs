//! One turn: seven stages in a straight line.
//!
//! Each stage takes the value that the stage before it gave, so the order is a
//! fact of the types. Up to `judge` a failure leaves nothing behind but an
//! abandoned turn whose messages are back in the inbox; from `judge` on every
//! effect is written before and after it happens, and the turn is committed
//! whatever its calls did. No stage may run a tool that has no stored decision.

mod act;
mod choice;
mod context;
mod finished;
mod inbox;
mod inference;
mod ingest;
mod judge;
mod memories;
mod persist;

use automaton_core::error::chain;
use automaton_core::id::{SessionId, TurnId};
use automaton_core::inference_budget::InferenceSpend;
use automaton_core::message::CLAIMED_PER_TURN_MAX;
use automaton_core::money::Microcents;
use automaton_core::tier::SurvivalTier;
use automaton_core::trust::{Label, Labelled};
use automaton_core::vitals::Vitals;
use automaton_inference::ModelIndex;
use automaton_policy::guard::Guard;
use automaton_store::{FailureCause, WakeSnapshot};
use std::sync::Arc;
use tokio::sync::{Mutex, watch};
use tracing::{Instrument as _, debug, info_span};

pub(crate) use self::context::{
    RecallMoment, left_out, memory_query, name_files, recalled, told_tools,
};
pub use self::inference::APPROVED_MODEL;
pub(crate) use self::memories::{ingestion_of, without_secrets};
pub(crate) use self::persist::{committed_event, sent};
use crate::deps::AgentDeps;
use crate::error::AgentError;
use crate::governor::TurnSummary;
use crate::handles::Handles;
use crate::metered::NotAnswered;
use crate::prompt::HistoryCache;
use crate::settings::Settings;
use crate::tasks::shutdown_requested;
use crate::toolbox::AgentTools;
use crate::treasury::Balances;

/// Dependencies of every stage.
pub(crate) struct AgentContext {
    pub(crate) settings: Settings,
    pub(crate) deps: AgentDeps,
    pub(crate) handles: Handles,
    /// The tools, and the rules by which they are offered.
    pub(crate) tools: Arc<AgentTools>,
    /// Looks at what others wrote.
    pub(crate) guard: Arc<Guard>,
    /// The history as the last prompt showed it.
    pub(crate) history_cache: Mutex<HistoryCache>,
    /// Becomes true when the process should end.
    pub(crate) shutdown: watch::Receiver<bool>,
    /// True when what is under way should be given up, see [`crate::life::WakeSignals`].
    pub(crate) interrupt: watch::Sender<bool>,
}

impl AgentContext {
    /// Returns when what is under way should be given up. Cancel-safe: a watch keeps its value.
    pub(crate) async fn interrupted(&self) {
        shutdown_requested(&self.interrupt.subscribe()).await;
    }
}

/// Cause and state of a turn's wake.
#[derive(Debug, Clone)]
pub(crate) struct WakeContext {
    pub(crate) session: SessionId,
    /// Texts besides its messages; at first the cause of the wake.
    pub(crate) told: Vec<Labelled>,
    /// The number of this turn in its wake, from 1.
    pub(crate) wake_turn: u32,
    /// The most turns of this wake.
    pub(crate) wake_turns: u32,
    /// True if the creator caused it.
    pub(crate) creators: bool,
    /// Sentences of the runtime.
    pub(crate) nudge: Option<String>,
    /// True if this turn has no tools, and hands over: a limit is reached.
    pub(crate) last: bool,
    /// The most that the last answer of this wake could cost.
    pub(crate) most: Microcents,
    /// Messages that it may claim.
    pub(crate) claim: ClaimLimit,
    /// The least trusted label that this wake has brought, as an input or a result.
    pub(crate) heard: Label,
    /// The automaton's money, if it has any.
    pub(crate) balances: Option<Balances>,
    /// Which of its models thinks.
    pub(crate) model: ModelIndex,
    /// Tier, if it is known.
    pub(crate) tier: Option<SurvivalTier>,
    /// Known means.
    pub(crate) vitals: Vitals,
    /// Cost of model calls before this turn.
    pub(crate) spend: InferenceSpend,
}

/// Number of messages that a turn claims.
///
/// A request that the server will never take may be one message's fault. So the
/// next turn asks without any; once that was answered they come one at a time,
/// and the one with which a request is rejected again is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ClaimLimit {
    /// As many as a turn may.
    #[default]
    All,
    /// None, to see whether the server takes anything at all.
    None,
    /// The oldest.
    One,
}

impl ClaimLimit {
    const fn most(self) -> u32 {
        match self {
            Self::All => CLAIMED_PER_TURN_MAX,
            Self::None => 0,
            Self::One => 1,
        }
    }

    /// Returns the claim of the turn after an answered one.
    pub(crate) const fn after_answer(self, answered_message: bool) -> Self {
        match self {
            Self::None => Self::One,
            Self::One if answered_message => Self::One,
            Self::One | Self::All => Self::All,
        }
    }

    /// Returns the claim of the turn after a rejected one.
    pub(crate) const fn after_rejection(self) -> Self {
        match self {
            Self::All | Self::None => Self::None,
            Self::One => Self::One,
        }
    }
}

/// A turn that failed, with its id once it had one.
#[derive(Debug)]
pub(crate) struct TurnFailure {
    pub(crate) turn: Option<TurnId>,
    pub(crate) error: NotAnswered,
}

/// A committed turn, for the cycle.
#[derive(Debug)]
pub(crate) struct TurnOutcome {
    pub(crate) summary: TurnSummary,
    /// The reason that the model gave for its sleep.
    pub(crate) note: Option<String>,
    /// The least trusted label that this wake has brought, as an input or a result.
    pub(crate) heard: Label,
    /// Text of the model.
    pub(crate) thought: String,
    /// The most that its answer could cost.
    pub(crate) most: Microcents,
    /// State of the wake afterwards.
    pub(crate) snapshot: WakeSnapshot,
}

/// Runs one turn.
///
/// # Errors
/// The inner error is a failed turn, which the cycle copes with. The outer one
/// ends the process.
pub(crate) async fn run_turn(
    ctx: &AgentContext,
    wake: WakeContext,
) -> Result<Result<TurnOutcome, TurnFailure>, AgentError> {
    let claimed = match inbox::claim(ctx, wake).await {
        Ok(claimed) => claimed,
        // Without the store nothing may go on: a start puts it in order.
        Err(NotAnswered::Store(error)) => return Err(error.into()),
        Err(error) => return Ok(Err(TurnFailure { turn: None, error })),
    };
    let span = info_span!("turn", id = %claimed.turn, number = claimed.seq);
    run_stages(ctx, claimed).instrument(span).await
}

/// The stages of a turn that is open.
async fn run_stages(
    ctx: &AgentContext,
    claimed: inbox::ClaimedTurn,
) -> Result<Result<TurnOutcome, TurnFailure>, AgentError> {
    let turn = claimed.turn;
    let claim = claimed.wake.claim;
    let first = claimed.first;
    let thought = match run_inference_stages(ctx, claimed).await {
        Ok(thought) => thought,
        Err(NotAnswered::Store(error)) => return Err(error.into()),
        Err(error) => {
            let blamed = first.filter(|_| claim == ClaimLimit::One && error.is_rejection());
            debug!(error = %chain(&error), "the turn is given up");
            abandon(ctx, turn, &error, blamed.map_or(FailureCause::Turn, FailureCause::Message))
                .await?;
            return Ok(Err(TurnFailure { turn: Some(turn), error }));
        }
    };
    let judged = judge::judge(ctx, thought).await?;
    let acted = act::act(ctx, judged).await?;
    let committed = persist::persist(ctx, acted).await?;
    Ok(Ok(ingest::ingest(committed)))
}

/// The stages before anything takes effect.
async fn run_inference_stages(
    ctx: &AgentContext,
    claimed: inbox::ClaimedTurn,
) -> Result<inference::AnsweredTurn, NotAnswered> {
    if let Some(approval) = claimed.approved_call.clone() {
        return Ok(inference::approved_call(claimed, &approval));
    }
    inference::ask(ctx, claimed).await
}

/// Gives a failed turn up; its messages go back to the inbox, all but the blamed
/// one unharmed.
async fn abandon(
    ctx: &AgentContext,
    turn: TurnId,
    error: &NotAnswered,
    blame: FailureCause,
) -> Result<(), AgentError> {
    let given_up = ctx.deps.store.abandon_turn(turn, blame).await?;
    for message in given_up {
        let reason = format!("it failed too often: {}", chain(error));
        ctx.deps.emit(automaton_core::event::Event::MessageFailed { message, reason });
    }
    Ok(())
}
