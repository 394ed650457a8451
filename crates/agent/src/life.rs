//! The outer loop: wake, work, sleep, for as long as the process lives.
//!
//! A start first puts in order what a crash left behind. Sleep is a row, so it
//! survives a restart. Nothing here may wake the automaton without a cause.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use automaton_core::error::ErrorClass;
use automaton_core::event::{CrashLeftovers, Event};
use automaton_core::hibernation::HibernationWaker;
use automaton_core::model::ModelId;
use automaton_core::record::{SleepInterrupt, SleepState, StopReason, WakeCause, WakeSource};
use automaton_core::state::AgentState;
use automaton_core::time::Span;
use automaton_core::trust::{Label, Labelled};
use automaton_inference::ProviderRegistry;
use automaton_policy::guard::Guard;
use automaton_store::{Approval, ApprovalState, ApprovalSubject, ChosenModel, StoreError};
use tokio::sync::{Mutex, Notify, watch};

use crate::control;
use crate::cycle;
use crate::deps::AgentDeps;
use crate::error::AgentError;
use crate::handles::{Handles, may_take};
use crate::heartbeat;
use crate::money;
use crate::prompt::HistoryCache;
use crate::release;
use crate::reopen;
use crate::settings::Settings;
use crate::survival;
use crate::tasks::{BackgroundTasks, shutdown_requested};
use crate::toolbox::{AgentTools, OfferRules};
use crate::treasury::settle_unsettled;
use crate::turn::{self, AgentContext, ClaimLimit};
use crate::wake::cause;

/// Outcome of a run of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentRunOutcome {
    /// Turns that were committed since the start.
    pub turns: u32,
    /// Reason for the end.
    pub reason: EndReason,
}

/// Reason for which the process ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The wanted number of turns is committed.
    TurnsUsed,
    /// It was started for a number of turns, and has answered its creator before that.
    Answered,
    /// The supervisor asked for it.
    Shutdown,
    /// The creator asked for it.
    Stopped,
}

/// Signals between background tasks and the outer loop.
#[derive(Clone)]
pub(crate) struct WakeSignals {
    /// Rings when there may be a reason to wake.
    pub(crate) wake: Arc<Notify>,
    /// Becomes true when the process should end.
    pub(crate) end: watch::Sender<bool>,
    /// Becomes true when what is under way should be given up, since the process or this
    /// wake should end; false again when the next wake begins.
    pub(crate) interrupt: watch::Sender<bool>,
    /// True if the creator asked for the end.
    pub(crate) stopped: Arc<AtomicBool>,
}

impl WakeSignals {
    /// Ends the process at the next safe point.
    pub(crate) fn end(&self) {
        self.end.send_replace(true);
        self.interrupt.send_replace(true);
    }
}

/// Lives until the turns are used up, or until somebody asks for the end.
///
/// # Errors
/// When a table, the workspace or the control socket cannot be used, or a task
/// that must not end has ended.
pub async fn live(
    settings: Settings,
    deps: AgentDeps,
    shutdown: watch::Receiver<bool>,
) -> Result<AgentRunOutcome, AgentError> {
    let (end, ending) = watch::channel(false);
    let interrupt = watch::Sender::new(false);
    let wake = Arc::new(Notify::new());
    let stopped = Arc::default();
    let signals = WakeSignals { wake, end, interrupt: interrupt.clone(), stopped };
    let rules = OfferRules { has_money: deps.treasury.is_some(), network: settings.egress.words() };
    let model = deps.providers.usual().provider.model().clone();
    let tools = Arc::new(AgentTools::new(Arc::clone(&deps.toolbox), model, rules));
    deps.providers.choose(known_choice(&deps).await?);
    let guard = Arc::new(Guard::new()?);
    let ctx = AgentContext {
        handles: Handles::new(
            &settings,
            &deps,
            Arc::clone(&tools),
            Arc::clone(&guard),
            interrupt.subscribe(),
        )?,
        history_cache: Mutex::new(HistoryCache::new(Arc::clone(&guard), tools.current().set)),
        guard,
        tools,
        settings,
        deps,
        shutdown: ending,
        interrupt,
    };
    let recovered = recover(&ctx).await?;
    ctx.handles.soul.begin().await?;
    let mut tasks = BackgroundTasks::default();
    control::start(&ctx, &signals, &mut tasks)?;
    heartbeat::start(&ctx, &signals, &mut tasks).await?;
    tasks.start("watch over the supervisor", forward(shutdown, signals.clone()));
    tasks.start("unload idle models", unload(ctx.deps.providers.clone()));
    if let Some(treasury) = &ctx.deps.treasury {
        treasury.load_sales().await?;
        tasks.start("watch sales", Arc::clone(treasury).watch_sales());
    }
    reopen::reopen_ports(&ctx).await?;
    let ended = tokio::select! {
        biased;
        // A cancelled life is a process that ends; the store recovers it.
        ended = run_cycles(&ctx, &signals, recovered) => ended,
        name = tasks.ended() => Err(AgentError::TaskEnded(name)),
    };
    tasks.end().await;
    if let (Ok(_), Some(treasury)) = (&ended, &ctx.deps.treasury) {
        treasury.check_books().await;
    }
    ended
}

/// Lets models go that nobody asks, for as long as it lives.
async fn unload(providers: ProviderRegistry) {
    loop {
        tokio::time::sleep(IDLE_MAX / 4).await;
        for (_, known) in providers.all() {
            known.provider.unload(IDLE_MAX).await;
        }
    }
}

/// The model that was chosen, if it still is there, and still is one that may be taken without the
/// creator where the automaton chose it.
pub(crate) async fn known_choice(deps: &AgentDeps) -> Result<Option<ModelId>, StoreError> {
    let Some(ChosenModel { model, by_creator }) = deps.store.chosen_model().await? else {
        return Ok(None);
    };
    let usual = deps.providers.usual();
    let why = match deps.providers.find(&model).await {
        Ok(None) => "is not served any more".to_owned(),
        Err(why) => format!("cannot think: {why}"),
        Ok(Some(known))
            if !by_creator && !may_take(usual.provider.model(), known.provider.model()) =>
        {
            "costs more now than the one that its creator gave it".to_owned()
        }
        Ok(Some(_)) => return Ok(Some(model)),
    };
    deps.emit(Event::ErrorReported {
        kind: ErrorClass::Config,
        error: format!("the model {model}, which was chosen, {why}"),
        hint: Some("the usual one thinks; `automaton model use` chooses another".to_owned()),
    });
    Ok(None)
}

/// Puts in order what a crash left behind; how many turns that brought to an end.
async fn recover(ctx: &AgentContext) -> Result<u32, AgentError> {
    let store = &ctx.deps.store;
    let recovered = store.recover().await?;
    for message in &recovered.given_up {
        let reason = "the process died each time that it was read".to_owned();
        ctx.deps.emit(Event::MessageFailed { message: *message, reason });
    }
    let committed = u32::try_from(recovered.committed.len()).unwrap_or(u32::MAX);
    let turns = store.recent_turns(1, committed).await?;
    for turn in turns.into_iter().filter(|turn| recovered.committed.contains(&turn.id)) {
        ctx.deps.emit(turn::committed_event(turn));
    }
    recovered.answers.into_iter().for_each(|answer| ctx.deps.emit(turn::sent(answer)));
    let tools = ctx.tools.current().set;
    for owed in store.owed_ingests().await? {
        let record = store.turn(owed).await?;
        let ingestion = record.as_ref().map(|turn| turn::ingestion_of(turn, &tools));
        let ingestion = ingestion.unwrap_or_default();
        store.ingest_turn(owed, ingestion).await?;
    }
    if recovered.session_cut.is_some() {
        ctx.deps.emit(Event::RecoveryDone(CrashLeftovers {
            unknown: recovered.unknown,
            not_started: recovered.not_started,
            returned: recovered.returned,
        }));
    }
    Ok(committed)
}

/// Hands the supervisor's wish on.
async fn forward(shutdown: watch::Receiver<bool>, signals: WakeSignals) {
    shutdown_requested(&shutdown).await;
    signals.end();
    std::future::pending().await
}

/// One wake cycle after the other.
async fn run_cycles(
    ctx: &AgentContext,
    signals: &WakeSignals,
    recovered: u32,
) -> Result<AgentRunOutcome, AgentError> {
    let mut turns = recovered;
    let mut claim = ClaimLimit::default();
    let turns_max = ctx.settings.pace.turns_max;
    settle_unsettled(&ctx.deps).await;
    release::tell_of_released(&ctx.deps).await?;
    money::check_balances(ctx).await;
    loop {
        if turns_max.is_some_and(|max| turns >= max) {
            return Ok(AgentRunOutcome { turns, reason: EndReason::TurnsUsed });
        }
        let Some(causes) = wait_for_causes(ctx, signals).await? else {
            return Ok(AgentRunOutcome { turns, reason: end_reason(signals) });
        };
        let left = turns_max.map(|max| max.saturating_sub(turns));
        // What was interrupted in the wake before may have been charged.
        settle_unsettled(&ctx.deps).await;
        let end = cycle::run(ctx, causes, left, claim).await?;
        (turns, claim) = (turns.saturating_add(end.turns), end.claim);
        if turns_max.is_some_and(|max| turns < max) && end.creators && answered(ctx).await? {
            return Ok(AgentRunOutcome { turns, reason: EndReason::Answered });
        }
    }
}

/// Idle time after which a local model is unloaded.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// A sleep that waits for nothing near.
const LONG_SLEEP: Span = Span::from_secs(3600);

/// Returns true if it rests with nothing open in either direction. Remaining turns would be paid
/// for nothing.
async fn answered(ctx: &AgentContext) -> Result<bool, AgentError> {
    let store = &ctx.deps.store;
    let long =
        |sleep: &SleepState| sleep.until.is_none_or(|until| until.since(sleep.since) >= LONG_SLEEP);
    let rests = store.life().await?.sleep.is_some_and(|sleep| match sleep.reason {
        StopReason::Said => true,
        StopReason::Asked => long(&sleep),
        _ => false,
    });
    // A call that was allowed is still to be made.
    let asks = |asked: &Approval| match asked.state {
        ApprovalState::Waiting => true,
        ApprovalState::Approved => matches!(asked.subject, ApprovalSubject::Call { .. }),
        _ => false,
    };
    Ok(rests
        && !*ctx.shutdown.borrow()
        && store.open_messages().await?.is_empty()
        && store.messages_waiting(None).await? == 0
        && store.pending_wakes().await?.is_empty()
        && !store.approvals(QUESTIONS_MAX).await?.iter().any(asks))
}

/// Questions to the creator that are looked at, newest first.
const QUESTIONS_MAX: u32 = 100;

fn end_reason(signals: &WakeSignals) -> EndReason {
    if signals.stopped.load(Ordering::Acquire) { EndReason::Stopped } else { EndReason::Shutdown }
}

/// Waits until there is a cause to wake; nothing when the process should end.
async fn wait_for_causes(
    ctx: &AgentContext,
    signals: &WakeSignals,
) -> Result<Option<Vec<WakeCause>>, AgentError> {
    if *ctx.shutdown.borrow() {
        return Ok(None);
    }
    let life = ctx.deps.store.life().await?;
    if life.state == AgentState::Hibernating {
        return hibernate(ctx, signals).await;
    }
    if life.state == AgentState::Dead || survival::is_broke(&ctx.deps).await? {
        return wait_for_credits(ctx, signals).await;
    }
    let mut pending = pending(ctx, life.sleep).await?;
    if life.state == AgentState::Setup {
        pending.insert(0, cause(WakeSource::Birth, "born"));
    }
    // More messages may wait than one turn claims; while it rests they do, too.
    let rests = life.sleep.is_some_and(|sleep| sleep.reason.roused_by() > SleepInterrupt::Anything);
    if pending.is_empty() && !rests {
        pending.extend(waiting(ctx).await?);
    }
    if !pending.is_empty() {
        return Ok(Some(pending));
    }
    match (life.state, life.sleep) {
        (AgentState::Sleeping, Some(sleep)) => sleep_through(ctx, signals, sleep).await,
        _ => Ok(Some(vec![cause(WakeSource::Recovery, "started again while awake")])),
    }
}

/// The cause that messages are which wait, if it answers them now. It is the creator's
/// where one of them is.
async fn waiting(ctx: &AgentContext) -> Result<Option<WakeCause>, AgentError> {
    let store = &ctx.deps.store;
    let words = "more messages are waiting";
    let only = survival::answers_only(&ctx.deps, &store.vitals().await?);
    if store.messages_waiting(Some(Label::Creator)).await? > 0 {
        let reason = Labelled::new(Label::Creator, "creator", words);
        return Ok(Some(WakeCause { source: WakeSource::Inbox, reason }));
    }
    let waits = store.messages_waiting(only).await? > 0;
    Ok(waits.then(|| cause(WakeSource::Inbox, words)))
}

/// The causes to wake that may end this sleep, and that its means let it wake for. The
/// others wait.
async fn pending(
    ctx: &AgentContext,
    sleep: Option<SleepState>,
) -> Result<Vec<WakeCause>, AgentError> {
    // A question that nobody answered in time is a no, which is news.
    ctx.deps.store.expire_approvals().await?;
    let store = &ctx.deps.store;
    let pending = store.pending_wakes().await?;
    let mut causes: Vec<WakeCause> = pending.into_iter().map(|(_, cause)| cause).collect();
    let wakes = match sleep.map(|sleep| sleep.reason.roused_by()) {
        None | Some(SleepInterrupt::Anything) => true,
        Some(SleepInterrupt::News) => store.has_news().await?,
        Some(SleepInterrupt::Unread) => {
            let is_unread = store.messages_unread().await? > 0;
            // The event of one that came with others may be consumed.
            if is_unread && causes.is_empty() {
                causes.extend(waiting(ctx).await?);
            }
            is_unread || store.has_news().await?
        }
        Some(SleepInterrupt::Creator) => store.unattended_usage().await?.rests == 0,
    };
    let means = survival::known_tier(&ctx.deps).await?;
    let heeds = |cause: &WakeCause| wakes && means.is_none_or(|tier| tier.wakes_for(cause));
    Ok(causes.into_iter().filter(heeds).collect())
}

/// Waits for credits, and wakes for whatever waited with it.
async fn wait_for_credits(
    ctx: &AgentContext,
    signals: &WakeSignals,
) -> Result<Option<Vec<WakeCause>>, AgentError> {
    let Some(mut causes) = survival::wait_for_credits(ctx, signals).await? else { return Ok(None) };
    causes.extend(pending(ctx, None).await?);
    Ok(Some(causes))
}

/// Waits for money or the creator: nothing else ends a hibernation, and no restart.
async fn hibernate(
    ctx: &AgentContext,
    signals: &WakeSignals,
) -> Result<Option<Vec<WakeCause>>, AgentError> {
    let mut told = false;
    loop {
        let now = money::holdings(ctx).await;
        let Some(hibernation) = ctx.deps.store.hibernation(now).await? else {
            return Ok(Some(vec![cause(WakeSource::Recovery, "no hibernation is on record")]));
        };
        if let Some(waker) = hibernation.ended_by(now) {
            let mut causes = pending(ctx, None).await?;
            let source = if waker == HibernationWaker::Creator {
                WakeSource::Heartbeat
            } else {
                WakeSource::Money
            };
            causes.insert(0, cause(source, &waker.to_string()));
            return Ok(Some(causes));
        }
        if !std::mem::replace(&mut told, true) {
            let since = hibernation.since;
            let reason = hibernation.reason;
            ctx.deps.emit(Event::HibernationStarted { since, reason });
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

/// Returns true if a sleep ends now that its time is over. In a run with a number of turns every
/// sleep does.
async fn ends(ctx: &AgentContext, reason: StopReason) -> Result<bool, AgentError> {
    let capped = ctx.settings.pace.sleep_cap.is_some();
    let means = survival::known_tier(&ctx.deps).await?;
    Ok(capped || means.is_none_or(|tier| tier.ends_by_time(reason)))
}

/// Sleeps until the sleep is over or something wakes the automaton.
async fn sleep_through(
    ctx: &AgentContext,
    signals: &WakeSignals,
    sleep: SleepState,
) -> Result<Option<Vec<WakeCause>>, AgentError> {
    let began = ctx.deps.ids.now();
    let planned = sleep.left(began);
    let capped = planned.into_iter().chain(ctx.settings.pace.sleep_cap).min();
    let until = capped.map(|span| began.after(span));
    let planned_ms = planned.map(Span::as_millis);
    let reason = sleep.reason;
    ctx.deps.emit(Event::SleepStarted { until: sleep.until, planned_ms, reason });
    let causes = loop {
        if survival::is_broke(&ctx.deps).await? {
            break wait_for_credits(ctx, signals).await?;
        }
        let mut causes = pending(ctx, Some(sleep)).await?;
        if !causes.is_empty() {
            break Some(causes);
        }
        let left = until.map(|until| until.since(ctx.deps.ids.now()));
        if left == Some(Span::ZERO) && ends(ctx, reason).await? {
            causes = pending(ctx, None).await?;
            causes.insert(0, cause(WakeSource::Timer, "the time of sleep is over"));
            break Some(causes);
        }
        let left = left.filter(|left| *left > Span::ZERO);
        let look = left.into_iter().chain([ctx.settings.limits.look]).min();
        tokio::select! {
            biased;
            // All arms are cancel-safe: a notify keeps its permit.
            () = shutdown_requested(&ctx.shutdown) => break None,
            () = signals.wake.notified() => {}
            () = tokio::time::sleep(look.unwrap_or_default().to_std()) => {}
        }
    };
    let actual_ms = ctx.deps.ids.now().since(began).as_millis();
    ctx.deps.emit(Event::SleepEnded { planned_ms, actual_ms });
    Ok(causes)
}
