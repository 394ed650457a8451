//! Stage 4: every call is checked, judged and stored before any of them runs.
//!
//! A call that is malformed never becomes a default; it goes back to the model
//! as an error. Only the policy can approve, and only what it approved is kept
//! to run. All decisions and intended effects are stored in one transaction, with what was
//! asked and what the answer cost, and whether
//! the turn's words end its wake: then they go to the creator, whoever commits it.

use automaton_core::error::chain;
use automaton_core::event::Event;
use automaton_core::id::{CallId, TurnId};
use automaton_core::intent::{Intent, Intentional as _};
use automaton_core::money::MicroUsdc;
use automaton_core::origin::{Origins, TargetValue, ValueKind, ValueOrigin};
use automaton_core::record::{Authority, CallStatus, DecisionOutcome, FinishedCall};
use automaton_core::tool::{ArgsHash, Effect, ToolSpec, canonical};
use automaton_core::trust::{Label, Labelled};
use automaton_inference::{AnswerFault, CheckedCall, Completion, RawCall};
use automaton_policy::rates::{Attempts, LIMITS, Limit};
use automaton_policy::{
    Approved, Decision, Facts, HardLimit, ReasonCode, RuleContext, Verdict, explain, target_values,
};
use automaton_store::{
    ApprovalRequest, AskedAnswer, AskedApproval, CallApprovalRequest, DecisionContext, JudgedCall,
    Judgement, NewDecision, RateLimit,
};
use automaton_tools::{PreparedCall, result, secrets_in};

use super::AgentContext;
use super::finished::finished_event;
use super::inbox::ClaimedTurn;
use super::inference::AnsweredTurn;
use super::persist::sent;
use crate::error::AgentError;
use crate::settings::AgentLimits;
use crate::survival;
use crate::treasury::Treasury;

/// Calls of one answer that are recorded, run or not. More would only fill the
/// history with calls that never ran.
const RECORDED_CALLS_MAX: usize = 16;

/// Characters of a call's arguments that a question to the creator begins with.
const SUMMARY_CHARS_MAX: usize = 500;

/// Reason for skipping a call beyond the limit.
const TOO_MANY: &str = "too many calls in one turn. Make it in the next turn.";

/// Reason for skipping a call of the last turn.
const LAST_TURN: &str = "this was the last turn of the wake, which has no tools.";

/// The ruling on one call.
pub(super) struct CallRuling {
    /// Its number in its turn, from 1.
    pub(super) place: u32,
    /// The tool, by its own name where the call names one.
    pub(super) tool: String,
    /// The call as it is stored.
    pub(super) judged: JudgedCall,
    /// The call, ready to run; nothing, where it will not run.
    pub(super) approved: Option<Approved<Box<dyn PreparedCall>>>,
}

/// A turn whose calls are judged and stored.
pub(super) struct JudgedTurn {
    pub(super) claimed: ClaimedTurn,
    pub(super) thought: String,
    /// Fault of the answer besides its calls.
    pub(super) fault: Option<AnswerFault>,
    pub(super) usage: automaton_core::record::Usage,
    /// The calls that may run, in order.
    pub(super) allowed: Vec<CallRuling>,
    /// The others.
    pub(super) settled: Vec<FinishedCall>,
}

/// Judges the calls of a thought and stores what comes of it.
pub(super) async fn judge(
    ctx: &AgentContext,
    thought: AnsweredTurn,
) -> Result<JudgedTurn, AgentError> {
    let AnsweredTurn { claimed, mut reply, asked } = thought;
    let fault = AnswerFault::from_reply(&reply, &claimed.offered);
    reply.calls.truncate(RECORDED_CALLS_MAX);
    let mut rulings: Vec<CallRuling> = Vec::with_capacity(reply.calls.len());
    // What was approved is made in any turn.
    let mut closed = (claimed.wake.last && claimed.approved_call.is_none()).then_some(LAST_TURN);
    let mut attempts = attempts(&claimed.started.uses);
    for (place, call) in (1..).zip(&reply.calls) {
        if place > ctx.settings.limits.calls_per_turn {
            closed = closed.or(Some(TOO_MANY));
        }
        let ruling = match closed {
            Some(why) => {
                let row = new_row(ctx, &claimed, place, call);
                CallRuling::settled(place, row, CallStatus::Skipped, &format!("Not run: {why}"))
            }
            None => rule(ctx, &claimed, attempts, (place, call)).await?,
        };
        if ruling.approved.is_some() {
            attempts.add(&ruling.judged.intents);
            closed = closed.or(ends_turn(&claimed, &ruling.tool));
        }
        rulings.push(ruling);
    }
    let Completion { text, usage, .. } = reply;
    store_and_split(ctx, claimed, ModelAnswer { text, fault, usage, asked }, rulings).await
}

/// Answer of a model, without the details of the wire.
struct ModelAnswer {
    text: String,
    fault: Option<AnswerFault>,
    usage: automaton_core::record::Usage,
    asked: Option<AskedAnswer>,
}

impl CallRuling {
    /// Returns the ruling of a call that will not run, for this reason.
    fn settled(place: u32, row: JudgedCall, status: CallStatus, reason: &str) -> Self {
        let result = Some(Labelled::new(Label::Own, "runtime", reason));
        let tool = row.tool.clone();
        Self { place, tool, judged: JudgedCall { status, result, ..row }, approved: None }
    }

    /// Returns the end of a call that will not run; nothing, where it is to run.
    fn finished(&self) -> Option<FinishedCall> {
        let JudgedCall { id, tool, arguments, status, result, .. } = &self.judged;
        let result = result.clone().filter(|_| self.approved.is_none())?;
        Some(FinishedCall {
            place: self.place,
            tool: tool.clone(),
            arguments: arguments.clone(),
            result,
            ..FinishedCall::by_runtime(*id, *status, "")
        })
    }
}

/// Returns the row of a call about which nothing is decided yet.
fn new_row(ctx: &AgentContext, claimed: &ClaimedTurn, place: u32, call: &RawCall) -> JudgedCall {
    // An approval is used up by the first call of its turn, whatever becomes of it.
    let approval = claimed.approved_call.as_ref().filter(|_| place == 1);
    JudgedCall {
        id: ctx.deps.ids.id(),
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
        args_hash: None,
        mutates: Effect::Observes,
        status: CallStatus::Planned,
        result: None,
        decision: None,
        intents: Vec::new(),
        limits: Vec::new(),
        question: None,
        approval: approval.map(|approval| approval.id),
    }
}

/// Returns the recent use of each limit, as of the opening of the turn. A limit that was not
/// counted has no room.
fn attempts(uses: &[u32]) -> Attempts {
    let mut counts = [u32::MAX; LIMITS.len()];
    counts.iter_mut().zip(uses).for_each(|(count, used)| *count = *used);
    Attempts::new(counts)
}

pub(super) fn counted(limit: &Limit) -> RateLimit {
    RateLimit { rule: limit.rule.to_owned(), max: limit.max, window: limit.window }
}

/// Returns why no later call of the turn runs after one of this tool, if it ends the turn.
fn ends_turn(claimed: &ClaimedTurn, tool: &str) -> Option<&'static str> {
    claimed.tools.set.find(tool)?.profile().ends_turn
}

/// Checks, parses and judges one call, after so many of its kind.
async fn rule(
    ctx: &AgentContext,
    claimed: &ClaimedTurn,
    attempts: Attempts,
    (place, call): (u32, &RawCall),
) -> Result<CallRuling, AgentError> {
    let begun = ctx.deps.ids.now();
    let row = new_row(ctx, claimed, place, call);
    let parsed = match claimed.tools.set.parse_call(&claimed.offered, call) {
        Ok(parsed) => parsed,
        Err(fault) => {
            return Ok(CallRuling::settled(place, row, CallStatus::Invalid, &fault.sentence));
        }
    };
    let spec = parsed.tool.spec();
    let intents = parsed.prepared.intents();
    let asked = (spec, &parsed.checked, intents.as_slice());
    let facts = facts_of(ctx, claimed, attempts, asked).await?;
    let moment = RuleContext {
        tool: &spec.name,
        at: begun,
        tier: claimed.wake.tier,
        turn: claimed.wake.wake_turn,
        call: place,
    };
    let approval = claimed.approved_call.as_ref().map(|approval| approval.id);
    let verdict = ctx.deps.judge.judge(parsed.prepared, &facts, &moment, approval);
    let under = DecisionContext {
        input: facts.input,
        heard: facts.heard,
        authority: Authority::of(facts.input.meet(facts.heard)),
        approval,
        latency_ms: ctx.deps.ids.now().since(begun).into(),
    };
    let decision = verdict.decision();
    let judged = JudgedCall {
        args_hash: Some(ArgsHash::of(&parsed.checked.arguments)),
        mutates: spec.effect,
        decision: Some(decision_row(spec, decision, under)),
        intents: decision.intents.clone(),
        ..row
    };
    Ok(match verdict {
        Verdict::Allowed(approved, decision) => CallRuling {
            place,
            tool: spec.name.to_string(),
            judged: JudgedCall {
                limits: Limit::for_intents(&decision.intents).map(counted).collect(),
                ..judged
            },
            approved: Some(approved),
        },
        Verdict::Held(decision) | Verdict::Refused(decision) => {
            let question = question(ctx, claimed, &judged.tool, (&decision, &parsed.checked));
            let reason = explain::to_model(&spec.name, &decision);
            let judged = JudgedCall { question, ..judged };
            let settled = CallRuling::settled(place, judged, CallStatus::Refused, &reason);
            CallRuling { tool: spec.name.to_string(), ..settled }
        }
    })
}

/// Gathers what the rules may know of a call of a tool with these arguments and intents.
async fn facts_of(
    ctx: &AgentContext,
    claimed: &ClaimedTurn,
    attempts: Attempts,
    (spec, checked, intents): (&ToolSpec, &CheckedCall, &[Intent]),
) -> Result<Facts, AgentError> {
    // An address that cannot be read leaves the creator reachable as `creator` only.
    let creator = ctx.settings.creator_address.as_deref().and_then(|text| text.parse().ok());
    let treasury = ctx.deps.treasury.as_ref();
    let own: Vec<&str> = treasury.and_then(|treasury| treasury.own_secret()).into_iter().collect();
    let hard_limit = match treasury.filter(|_| claimed.approved_call.is_none()) {
        Some(treasury) => limit_of_payment(treasury, intents).await,
        None => None,
    };
    Ok(Facts {
        input: claimed.label,
        heard: claimed.wake.heard,
        origins: origins(ctx, intents, claimed.started.others_wrote).await?,
        secrets: secrets_in(&checked.arguments, &own),
        risk: spec.risk,
        creator,
        paid_hosts: treasury.map(|treasury| treasury.paid_hosts()).unwrap_or_default(),
        egress: std::sync::Arc::default(),
        attempts,
        creator_waits: claimed.creator_waits,
        purpose_asks: ctx.settings.soul.purpose_asks,
        gives_alone: treasury.is_some_and(|treasury| treasury.limits().gives_alone),
        published_before: is_published_before(ctx, intents).await?,
        tier: survival::paying_tier(&ctx.deps, &claimed.wake),
        hard_limit,
    })
}

/// The limit that would refuse the payment of a call after the creator's approval. What cannot
/// be read is not asked about either.
async fn limit_of_payment(treasury: &Treasury, intents: &[Intent]) -> Option<HardLimit> {
    treasury.hard_limit(intents).await.unwrap_or_else(|error| {
        let reason = format!("Whether it may be paid is not known: {}.", chain(&error));
        Some(HardLimit { code: ReasonCode::BalanceUnknown, reason })
    })
}

/// Returns the origins of the intents' values. The creator named those in the configuration.
async fn origins(
    ctx: &AgentContext,
    intents: &[Intent],
    others_wrote: bool,
) -> Result<Origins, AgentError> {
    let (configured, asked): (Vec<TargetValue>, Vec<TargetValue>) =
        intents.iter().flat_map(target_values).partition(|value| is_configured(ctx, value));
    // Where nobody else had written anything that the model can have read, it has all from
    // itself, but for who is paid or written to: that is the creator's to name.
    let is_asked = others_wrote || asked.iter().any(|value| value.kind == ValueKind::Recipient);
    let found = match is_asked {
        false => asked.into_iter().map(|value| (value, ValueOrigin::Own)).collect(),
        true => ctx.deps.store.origins(asked).await?,
    };
    let configured = configured.into_iter().map(|value| (value, ValueOrigin::Creator));
    Ok(Origins::found(configured.chain(found)))
}

fn is_configured(ctx: &AgentContext, value: &TargetValue) -> bool {
    let settings = &ctx.settings;
    let creator = settings.creator_address.as_deref().unwrap_or_default();
    value.is_in(creator) || value.is_in(&settings.genesis)
}

/// Returns true if the port of a call was open before, at the same price and with the same
/// background commands. Only allowed calls are on that record.
async fn is_published_before(ctx: &AgentContext, intents: &[Intent]) -> Result<bool, AgentError> {
    let opened = intents.iter().find_map(|intent| match intent {
        Intent::Publish { port, price, open: true } => Some((*port, price)),
        _ => None,
    });
    let Some((port, price)) = opened else { return Ok(false) };
    let published = ctx.deps.store.published_ports().await?;
    let Some(before) = published.into_iter().find(|it| it.port == port) else { return Ok(false) };
    let before_price = before.price.unwrap_or_default();
    let is_same_price = match (MicroUsdc::parse(price), MicroUsdc::parse(&before_price)) {
        (Ok(now), Ok(then)) => now == then,
        _ => *price == before_price,
    };
    let running = ctx.handles.workspace.running_commands().await;
    Ok(is_same_price && running.iter().all(|command| before.commands.contains(command)))
}

/// Stores the rulings, tells of them, and parts the calls that may run from the others.
async fn store_and_split(
    ctx: &AgentContext,
    claimed: ClaimedTurn,
    answer: ModelAnswer,
    rulings: Vec<CallRuling>,
) -> Result<JudgedTurn, AgentError> {
    let turn = claimed.turn;
    let mut events = Vec::new();
    let mut settled = Vec::new();
    for ruling in &rulings {
        events.extend(decision_event(turn, ruling));
        if let Some(call) = ruling.finished() {
            events.extend(finished_event(turn, &call));
            settled.push(call);
        }
    }
    let mut rows: Vec<JudgedCall> = rulings.iter().map(|ruling| ruling.judged.clone()).collect();
    let allowed: Vec<CallRuling> =
        rulings.into_iter().filter(|ruling| ruling.approved.is_some()).collect();
    // The first one starts with its judgement: it is written before it runs, and once.
    if let Some(first) = allowed.first()
        && let Some(row) = rows.iter_mut().find(|row| row.id == first.judged.id)
    {
        row.status = CallStatus::Started;
    }
    let summaries: Vec<(CallId, String)> = rows.iter().filter_map(asked_summary).collect();
    let ModelAnswer { text: thought, fault, usage, asked } = answer;
    // A hand-over at a limit does not answer open messages.
    let ends =
        rows.is_empty() && !thought.trim().is_empty() && fault.is_none() && !claimed.wake.last;
    // What it says now it may have from what it has read.
    let voice = ends.then(|| Label::Own.meet(claimed.label).meet(claimed.wake.heard));
    let judgement =
        Judgement { turn, thought: thought.clone(), voice, usage: usage.clone(), calls: rows };
    let asked = ctx.deps.store.record_judgement(judgement, asked).await?;
    events.into_iter().for_each(|event| ctx.deps.emit(event));
    asked
        .into_iter()
        .filter_map(|asked| asked_event(asked, &summaries))
        .for_each(|event| ctx.deps.emit(event));
    if let Some(refused) = settled.first().filter(|_| claimed.approved_call.is_some()) {
        tell_not_made(ctx, &claimed, refused).await?;
    }
    Ok(JudgedTurn { claimed, thought, fault, usage, allowed, settled })
}

/// Tells the creator that an approved call was refused all the same: something has changed
/// between the question and the answer.
async fn tell_not_made(
    ctx: &AgentContext,
    claimed: &ClaimedTurn,
    refused: &FinishedCall,
) -> Result<(), AgentError> {
    let text = format!("The call that you approved was not made: {}", refused.result.text);
    let words = Labelled::new(Label::Own, "runtime", text);
    let message = ctx.deps.store.tell_creator(claimed.wake.session, words.clone()).await?;
    ctx.deps.emit(sent((message, words)));
    Ok(())
}

/// Returns the summary of the question that a call asks the creator, if it asks one.
fn asked_summary(row: &JudgedCall) -> Option<(CallId, String)> {
    let CallApprovalRequest { question, .. } = row.question.as_ref()?;
    Some((row.id, question.summary.clone()))
}

/// Returns the event of a question that is new.
fn asked_event(asked: AskedApproval, summaries: &[(CallId, String)]) -> Option<Event> {
    let AskedApproval { call, approval } = asked;
    let (_, summary) = summaries.iter().find(|(id, _)| *id == call)?;
    let summary = summary.clone();
    Some(Event::ApprovalAsked { approval, payment: None, call: Some(call), summary })
}

/// Returns the question to the creator about a call, where the decision asks one.
fn question(
    ctx: &AgentContext,
    claimed: &ClaimedTurn,
    tool: &str,
    (decision, checked): (&Decision, &CheckedCall),
) -> Option<CallApprovalRequest> {
    if decision.outcome != DecisionOutcome::Ask {
        return None;
    }
    let patience = AgentLimits::patience(ctx.settings.limits.answer_within, claimed.wake.creators);
    let arguments = canonical(&checked.arguments);
    let question = ApprovalRequest {
        summary: format!("{tool} {}", result::cap(&arguments, SUMMARY_CHARS_MAX)),
        code: decision.code.name().to_owned(),
        reason: decision.reason.to_string(),
        expires_at: ctx.deps.ids.now().after(patience),
    };
    let label = Label::Own.meet(claimed.label).meet(claimed.wake.heard);
    Some(CallApprovalRequest { question, arguments, label })
}

fn decision_row(tool: &ToolSpec, decision: &Decision, under: DecisionContext) -> NewDecision {
    NewDecision {
        outcome: decision.outcome,
        code: decision.code.name().to_owned(),
        reason: decision.reason.to_string(),
        risk: tool.risk,
        rules_evaluated: decision.evaluated().map(str::to_owned).collect(),
        rules_triggered: decision.triggered().map(str::to_owned).collect(),
        under,
    }
}

/// Returns the event of the decision about a call, if it came before the policy.
fn decision_event(turn: TurnId, ruling: &CallRuling) -> Option<Event> {
    let NewDecision { outcome, code, reason, .. } = ruling.judged.decision.as_ref()?;
    Some(Event::DecisionMade {
        turn,
        call: ruling.judged.id,
        tool: ruling.tool.clone(),
        outcome: *outcome,
        code: code.clone(),
        reason: reason.clone(),
    })
}
