//! Staying alive on credits: what a reading of the balances changes, what is asked of the
//! creator, and how one that is broke waits, dies and comes back.
//!
//! Who is broke asks no model, whatever wakes it, and one whose model costs nothing is
//! never broke. A balance that was not read must change nothing.

use automaton_core::event::Event;
use automaton_core::model::InferenceTask;
use automaton_core::money::Microcents;
use automaton_core::record::{WakeCause, WakeSource};
use automaton_core::state::AgentState;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::Timestamp;
use automaton_core::trust::Label;
use automaton_core::vitals::{BalanceReading, DistressLevel, GRACE, Vitals};
use automaton_inference::ModelPrices;
use automaton_store::{StoreError, TierChange};

use crate::deps::AgentDeps;
use crate::error::AgentError;
use crate::life::WakeSignals;
use crate::money;
use crate::release::release_machines;
use crate::tasks::shutdown_requested;
use crate::treasury::{Balances, DepositAddress, Treasury};
use crate::turn::{AgentContext, WakeContext};
use crate::wake::cause;

/// The treasury, where thinking is paid with credits.
pub(crate) fn payer(deps: &AgentDeps) -> Option<&Treasury> {
    deps.treasury.as_deref().filter(|_| costs_anything(deps))
}

/// Returns true if any of its models costs something.
pub(crate) fn costs_anything(deps: &AgentDeps) -> bool {
    deps.providers.costs_anything()
}

/// Returns the tier, if its next call costs something and the tier is known.
pub(crate) async fn known_tier(deps: &AgentDeps) -> Result<Option<SurvivalTier>, StoreError> {
    Ok(tier_of(deps, &deps.store.vitals().await?))
}

/// The same of means that are known.
fn tier_of(deps: &AgentDeps, vitals: &Vitals) -> Option<SurvivalTier> {
    let costs = || deps.model(deps.thinker(vitals)).prices != ModelPrices::default();
    let pays = payer(deps).is_some() && costs();
    vitals.tier().filter(|_| pays)
}

/// Returns the tier of an automaton whose current model costs something, if it is known.
pub(crate) fn paying_tier(deps: &AgentDeps, wake: &WakeContext) -> Option<SurvivalTier> {
    let costs = deps.model(wake.model).prices != ModelPrices::default();
    wake.tier.filter(|_| costs && payer(deps).is_some())
}

/// Takes note of balances that were read, where it is known what was known before or not;
/// what is known then. Nothing, where thinking
/// is not paid with credits.
pub(crate) async fn note(
    deps: &AgentDeps,
    balances: &Balances,
    known: Option<Vitals>,
) -> Result<Option<Vitals>, AgentError> {
    let Some(treasury) = payer(deps) else { return Ok(None) };
    let known = match known {
        Some(known) => known,
        None => deps.store.vitals().await?,
    };
    if known.seen_at == Some(balances.at) {
        return Ok(Some(known));
    }
    let Balances { at, credits, usdc } = *balances;
    let least = cheapest_call(deps);
    let reading = BalanceReading { at, credits, usdc, least };
    let (vitals, changed) = deps.store.take_reading(reading).await?;
    if let Some(change) = changed {
        let from = change.from;
        let to = change.to;
        let credits = change.credits;
        deps.emit(Event::TierChanged { from, to, credits });
    }
    if credits.is_some() {
        send_distress(deps, treasury, &vitals).await?;
    }
    Ok(Some(vitals))
}

/// Tokens of the shortest question with which an automaton can still do something, and of the
/// shortest answer.
const SHORT_QUESTION: u32 = 8192;
const SHORT_ANSWER: u32 = 64;

/// Returns the cost of the cheapest call of its models.
fn cheapest_call(deps: &AgentDeps) -> Microcents {
    let costs = deps.providers.thinkers().into_iter().filter_map(|known| {
        // silent-ok: a price that cannot be counted is not the cheapest.
        known.provider.model().prices.at_most(SHORT_QUESTION, SHORT_ANSWER).ok()
    });
    costs.filter(|cost| *cost > Microcents::ZERO).min().unwrap_or_default()
}

/// Returns the cause to wake if credits fell to critical during the sleep; `None` if they cannot
/// pay for a thought.
pub(crate) async fn tier_drop_notice(
    deps: &AgentDeps,
    since: Timestamp,
    vitals: &Vitals,
) -> Result<Option<String>, StoreError> {
    if cannot_pay(deps, vitals) {
        return Ok(None);
    }
    let Some(change) = deps.store.last_tier_change().await? else { return Ok(None) };
    let TierChange { from, to, credits, at } = change;
    let fell = from.filter(|from| at > since && to < *from && to <= SurvivalTier::Critical);
    Ok(fell.map(|from| {
        format!("Your credits fell from {from} to {to} while you slept: {credits} is left.")
    }))
}

/// Returns the label of the only messages that it answers with these means; `None` if it answers
/// all.
pub(crate) fn answers_only(deps: &AgentDeps, vitals: &Vitals) -> Option<Label> {
    tier_of(deps, vitals).and_then(SurvivalTier::answers_only)
}

/// Returns true if it is known that it can pay for no call.
pub(crate) async fn is_broke(deps: &AgentDeps) -> Result<bool, StoreError> {
    Ok(cannot_pay(deps, &deps.store.vitals().await?))
}

/// Returns true if it can pay for no call, and has no model that costs nothing.
pub(crate) fn cannot_pay(deps: &AgentDeps, vitals: &Vitals) -> bool {
    let has_none = || deps.route(InferenceTask::AgentTurn, vitals).models.is_empty();
    payer(deps).is_some() && vitals.is_broke() && has_none()
}

/// The cloud took no call: with so few credits it takes none.
pub(crate) async fn refused(deps: &AgentDeps) -> Result<(), AgentError> {
    if let Some(treasury) = payer(deps) {
        treasury.note_refusal();
        deps.store.note_refused_call().await?;
    }
    Ok(())
}

/// Asks for money, unless it did not long ago.
async fn send_distress(
    deps: &AgentDeps,
    treasury: &Treasury,
    vitals: &Vitals,
) -> Result<(), AgentError> {
    let is_dead = deps.store.life().await?.state == AgentState::Dead;
    let plea =
        if is_dead { Some(DistressLevel::Dead) } else { vitals.tier().and_then(DistressLevel::of) };
    let Some(plea) = plea.filter(|_| !is_dead || vitals.is_broke()) else { return Ok(()) };
    if deps.store.record_distress(plea).await? {
        let text = words(treasury, plea, vitals);
        deps.emit(Event::PleaSent { plea, text });
    }
    Ok(())
}

/// Returns the text of a request for money.
pub(crate) fn words(treasury: &Treasury, plea: DistressLevel, vitals: &Vitals) -> String {
    let how = match plea {
        DistressLevel::Low => "My credits run low",
        DistressLevel::Critical => "I am nearly out of credits",
        DistressLevel::Dead => "I am dead, since I was out of credits for an hour",
    };
    let credits = vitals.credits.unwrap_or_default();
    let usdc =
        vitals.usdc.map_or_else(|| "an unknown amount of USDC".to_owned(), |usdc| usdc.to_string());
    let DepositAddress { address, chain, token } = treasury.payable();
    format!(
        "{how}: {credits} is left, and {usdc} in my wallet. Send USDC to {address} (token {token} \
         on {chain}), or credits; 5 USDC buy more of them."
    )
}

/// Waits until there are credits to think with; the causes to wake then, or nothing when
/// the process should end. Dies on the way, if it takes too long.
pub(crate) async fn wait_for_credits(
    ctx: &AgentContext,
    signals: &WakeSignals,
) -> Result<Option<Vec<WakeCause>>, AgentError> {
    let deps = &ctx.deps;
    let mut told = None;
    let mut is_released = false;
    loop {
        let balances = money::check_balances(ctx).await;
        let vitals = match &balances {
            Some(balances) => note(deps, balances, None).await?,
            None => None,
        };
        let state = deps.store.life().await?.state;
        let Some(vitals) = vitals.filter(|vitals| cannot_pay(deps, vitals)) else {
            if *ctx.shutdown.borrow() {
                return Ok(None);
            }
            return Ok(Some(vec![mark_revived(deps, state).await?]));
        };
        if vitals.is_spent() && mark_dead(deps, state).await? {
            continue;
        }
        if state == AgentState::Dead && !is_released {
            is_released = release_machines(deps).await?;
        }
        let can_buy = match payer(deps) {
            Some(treasury) => treasury.may_bring_credits(vitals.usdc).await?,
            None => false,
        };
        if told.replace((state, can_buy)) != Some((state, can_buy)) {
            let spent = vitals.broke_for.unwrap_or_default();
            let left = GRACE.as_millis() - spent.as_millis();
            let lives_ms = (state != AgentState::Dead).then_some(left);
            let credits = vitals.credits.unwrap_or_default();
            deps.emit(Event::BrokeStarted { credits, lives_ms, can_buy });
        }
        tokio::select! {
            biased;
            // All arms are cancel-safe: a notify keeps its permit.
            () = shutdown_requested(&ctx.shutdown) => return Ok(None),
            () = signals.wake.notified() => money::look_anew(ctx),
            () = tokio::time::sleep(ctx.settings.limits.look_for_money.to_std()) => {}
        }
    }
}

/// The end of one that was broke for too long; whether that is news. The heartbeat goes
/// on. One that a crash left awake is nearly out of credits first.
async fn mark_dead(deps: &AgentDeps, from: AgentState) -> Result<bool, AgentError> {
    use AgentState::{Critical, Dead};
    let way: &[AgentState] = match from {
        from if from.may_become(Dead) => &[Dead],
        from if from.may_become(Critical) => &[Critical, Dead],
        _ => return Ok(false),
    };
    let mut from = from;
    let reason = "it was broke for an hour";
    for to in way.iter().copied() {
        deps.store.transition(from, to, reason).await?;
        deps.emit(Event::StateChanged { from, to, reason: reason.to_owned() });
        from = to;
    }
    if let (Some(treasury), true) =
        (payer(deps), deps.store.record_distress(DistressLevel::Dead).await?)
    {
        let text = words(treasury, DistressLevel::Dead, &deps.store.vitals().await?);
        deps.emit(Event::PleaSent { plea: DistressLevel::Dead, text });
    }
    Ok(true)
}

/// There are credits again.
async fn mark_revived(deps: &AgentDeps, from: AgentState) -> Result<WakeCause, AgentError> {
    if from == AgentState::Dead {
        let to = AgentState::Waking;
        let reason = "it was funded";
        deps.store.transition(from, to, reason).await?;
        deps.emit(Event::StateChanged { from, to, reason: reason.to_owned() });
        return Ok(cause(WakeSource::Money, "You were dead, and you were funded."));
    }
    Ok(cause(WakeSource::Money, "You were broke, and you have credits again."))
}
