//! Effects of money on a life: balances are checked before each turn, the state follows them, and
//! a life with too large losses hibernates.
//!
//! What is unknown changes no state, and a failed purchase must never keep the
//! automaton from thinking.

use automaton_core::event::Event;
use automaton_core::hibernation::Holdings;
use automaton_core::money::{Microcents, MoneyError};
use automaton_core::state::AgentState;
use automaton_core::tier::SurvivalTier;
use automaton_core::vitals::Vitals;
use automaton_inference::{CompletionRequest, ModelInfo};
use automaton_store::WakeQuery;

use crate::deps::AgentDeps;
use crate::error::AgentError;
use crate::survival;
use crate::tasks::shutdown_requested;
use crate::treasury::Balances;
use crate::turn::AgentContext;

/// Tokens that a chat template may add to a message, and to a conversation.
const TOKENS_PER_MESSAGE: usize = 16;
const TOKENS_PER_PROMPT: usize = 256;

/// Looks after the credits; what is there then.
pub(crate) async fn check_balances(ctx: &AgentContext) -> Option<Balances> {
    let treasury = ctx.deps.treasury.as_ref()?;
    tokio::select! {
        biased;
        // Both arms are safe to drop: a purchase under way goes on by itself.
        () = shutdown_requested(&ctx.shutdown) => None,
        balances = treasury.check_balances() => Some(balances),
    }
}

/// Has the next look read the balances anew, since somebody says that there is news.
pub(crate) fn look_anew(ctx: &AgentContext) {
    if let Some(treasury) = &ctx.deps.treasury {
        treasury.forget_balances();
    }
}

/// Brings the state of one that is awake, and was in this one, to what its credits make of it, or its choice
/// to live cheaply.
pub(crate) async fn sync_state(
    deps: &AgentDeps,
    balances: &Balances,
    vitals: Option<&Vitals>,
    state: AgentState,
) -> Result<(), AgentError> {
    let Some((credits, tier)) = balances.credits.zip(balances.tier()) else { return Ok(()) };
    let lives_by = vitals.and_then(Vitals::effective_tier).unwrap_or(tier);
    let to = state_of(lives_by);
    if to == state {
        return Ok(());
    }
    change_state(deps, to, &format!("credits are {tier}: {credits}")).await
}

/// Changes the state, where that is a change and the table has it.
pub(crate) async fn change_state(
    deps: &AgentDeps,
    to: AgentState,
    reason: &str,
) -> Result<(), AgentError> {
    let from = deps.store.life().await?.state;
    if from != to && from.may_become(to) {
        deps.store.transition(from, to, reason).await?;
        deps.emit(Event::StateChanged { from, to, reason: reason.to_owned() });
    }
    Ok(())
}

/// The state in which a tier thinks. One in debt is as near to its end as one
/// that is awake can be.
pub(crate) const fn state_of(tier: SurvivalTier) -> AgentState {
    match tier {
        SurvivalTier::High | SurvivalTier::Normal => AgentState::Running,
        SurvivalTier::LowCompute => AgentState::LowCompute,
        SurvivalTier::Critical | SurvivalTier::Dead => AgentState::Critical,
    }
}

/// The most that an answer can cost. Every tokenizer in use makes a token of at least
/// one byte of text, and no model reads more than its window.
///
/// # Errors
/// [`MoneyError::Overflow`].
pub fn at_most(model: &ModelInfo, ask: &CompletionRequest) -> Result<Microcents, MoneyError> {
    let messages = ask.messages.iter().map(|message| {
        let calls = message.calls.iter().map(|call| call.tool.len() + call.arguments.len());
        TOKENS_PER_MESSAGE + message.content.len() + calls.sum::<usize>()
    });
    let tools = ask.tools.iter().map(|tool| {
        let schema = tool.parameters.text().len();
        TOKENS_PER_MESSAGE + tool.name.as_str().len() + tool.description.len() + schema
    });
    let all = TOKENS_PER_PROMPT + messages.chain(tools).sum::<usize>();
    let prompt = u32::try_from(all).unwrap_or(u32::MAX).min(model.context_tokens);
    model.prices.at_most(prompt, ask.max_tokens)
}

/// The most tokens that texts of a request of so many bytes have for a model of embeddings, as a
/// cloud counts them.
pub(crate) fn tokens_at_most(bytes: usize, texts: usize) -> u32 {
    let all = bytes.saturating_add(TOKENS_PER_PROMPT + TOKENS_PER_MESSAGE.saturating_mul(texts));
    u32::try_from(all).unwrap_or(u32::MAX)
}

/// The shortest answer that is worth asking for, in tokens.
const ANSWER_MIN: u32 = 64;

/// The most tokens that an answer may have for the credits that are left, where it could cost
/// `most` as it is asked for.
pub(crate) fn paid_answer(
    model: &ModelInfo,
    ask: &CompletionRequest,
    most: Microcents,
    credits: Microcents,
) -> u32 {
    let lacking = most.units().saturating_sub(credits.units()).max(0);
    let price = i128::from(model.prices.output_per_million.units());
    let cut = (i128::from(lacking) * 1_000_000 + price - 1).checked_div(price).unwrap_or(0);
    let cut = u32::try_from(cut).unwrap_or(u32::MAX);
    ask.max_tokens.saturating_sub(cut).max(ANSWER_MIN.min(ask.max_tokens))
}

/// Returns the reason to hibernate, if the losses reached a limit.
pub(crate) async fn stop_loss_reached(ctx: &AgentContext) -> Result<Option<String>, AgentError> {
    let stop_loss = ctx.settings.budgets.stop_loss;
    if !stop_loss.is_set() {
        return Ok(None);
    }
    let losses = ctx.deps.store.losses().await?;
    Ok(stop_loss.first_reached(&losses).map(|tripped| tripped.to_string()))
}

/// Returns the sums that must be read before each turn.
pub(crate) fn wake_query(ctx: &AgentContext) -> WakeQuery {
    let losses = ctx.settings.budgets.stop_loss.is_set();
    WakeQuery { costs: survival::costs_anything(&ctx.deps), losses }
}

/// Returns the known balances.
pub(crate) async fn holdings(ctx: &AgentContext) -> Holdings {
    let Some(treasury) = &ctx.deps.treasury else { return Holdings::default() };
    tokio::select! {
        biased;
        // Both arms are safe to drop: reading changes nothing.
        () = shutdown_requested(&ctx.shutdown) => Holdings::default(),
        balances = treasury.balances() => {
            Holdings { credits: balances.credits, usdc: balances.usdc }
        }
    }
}
