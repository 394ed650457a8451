//! What money does to a life: it is looked after before each turn, and the state
//! follows it.
//!
//! Without a treasury nothing of this happens. What is unknown changes no state,
//! and a failed purchase must never keep the automaton from thinking.

use automaton_core::event::Event;
use automaton_core::state::AgentState;
use automaton_core::tier::SurvivalTier;
use automaton_core::tool::ToolSpec;
use automaton_inference::ModelInfo;
use automaton_tools::list;

use crate::error::AgentError;
use crate::tasks::ending;
use crate::treasury::{Balances, Moment};
use crate::turn::Body;

/// The tools of an automaton that has money, or has none. A weak model is not
/// trusted with any; what it needs is bought for it.
pub(crate) fn offered<Money>(model: &ModelInfo, money: Option<&Money>) -> Vec<ToolSpec> {
    if money.is_some() && !model.weak { list::specs() } else { list::moneyless() }
}

/// Looks after the credits; what is there then.
pub(crate) async fn look(body: &Body, moment: Moment) -> Option<Balances> {
    let treasury = body.deps.treasury.as_ref()?;
    tokio::select! {
        biased;
        // Both arms are safe to drop: a purchase under way goes on by itself.
        () = ending(&body.shutdown) => None,
        balances = treasury.look(moment) => Some(balances),
    }
}

/// Brings the state of one that is awake to what its credits make of it.
pub(crate) async fn follow(body: &Body, balances: &Balances) -> Result<(), AgentError> {
    let Some((credits, tier)) = balances.credits.zip(balances.tier()) else { return Ok(()) };
    let to = state_of(tier);
    let from = body.deps.store.life().await?.state;
    if from != to && from.may_become(to) {
        let reason = format!("credits are {tier}: {credits}");
        body.deps.store.transition(from, to, &reason).await?;
        body.deps.emit(Event::StateChanged { from, to, reason });
    }
    Ok(())
}

/// The state in which a tier thinks. One in debt is as near to its end as one
/// that is awake can be.
const fn state_of(tier: SurvivalTier) -> AgentState {
    match tier {
        SurvivalTier::High | SurvivalTier::Normal => AgentState::Running,
        SurvivalTier::LowCompute => AgentState::LowCompute,
        SurvivalTier::Critical | SurvivalTier::Dead => AgentState::Critical,
    }
}
