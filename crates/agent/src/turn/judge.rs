//! Stage 4: every call is checked, judged and stored before any of them runs.
//!
//! A call that is malformed never becomes a default; it goes back to the model
//! as an error. Only the policy can approve, and only what it approved is kept
//! to run. All decisions and intended effects are stored in one transaction, with what was
//! asked and what the answer cost, and whether
//! the turn's words end its wake: then they go to the creator, whoever commits it.

use automaton_core::error::chain;
use automaton_core::event::Event;
use automaton_core::id::{ApprovalId, CallId, TurnId};
use automaton_core::intent::{Intent, Intentional as _};
use automaton_core::money::MicroUsdc;
use automaton_core::origin::{Origins, TargetValue, ValueKind, ValueOrigin};
use automaton_core::record::{Authority, CallStatus, DecisionOutcome};
use automaton_core::time::Timestamp;
use automaton_core::tool::{ArgsHash, Effect, ToolName, ToolSpec, canonical};
use automaton_core::trust::{Label, Labelled};
use automaton_inference::{AnswerFault, Completion, RawCall};
use automaton_policy::rates::{Attempts, LIMITS, Limit};
use automaton_policy::{
    Approved, Decision, Facts, HardLimit, ReasonCode, RuleContext, Verdict, explain,
};
use automaton_store::{
    ApprovalRequest, AskedAnswer, AskedApproval, CallApprovalRequest, DecisionContext, JudgedCall,
    Judgement, NewDecision, RateLimit,
};
use automaton_tools::{PreparedCall, result, secrets_in};
use serde_json::Value;

use super::AgentContext;
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

/// Why a call beyond the limit was skipped.
const TOO_MANY: &str = "too many calls in one turn. Make it in the next turn.";

/// Why a call of the last turn was skipped.
const LAST_TURN: &str = "this was the last turn of the wake, which has no tools.";

/// A call that may run.
pub(super) struct AllowedCall {
    pub(super) id: CallId,
    /// Its number in its turn, from 1.
    pub(super) place: u32,
    pub(super) tool: ToolName,
    pub(super) arguments: String,
    pub(super) effect: Effect,
    pub(super) approved: Approved<Box<dyn PreparedCall>>,
}

/// A call that will not run, as the next prompt will tell it.
#[derive(Debug)]
pub(super) struct SkippedCall {
    pub(super) tool: String,
    pub(super) arguments: String,
    pub(super) status: CallStatus,
    pub(super) text: String,
}

/// A turn whose calls are judged and stored.
pub(super) struct JudgedTurn {
    pub(super) claimed: ClaimedTurn,
    pub(super) thought: String,
    /// What is wrong with the answer, which its calls do not say.
    pub(super) fault: Option<AnswerFault>,
    pub(super) usage: automaton_core::record::Usage,
    pub(super) allowed: Vec<AllowedCall>,
    pub(super) settled: Vec<SkippedCall>,
}

/// Judges the calls of a thought and stores what comes of it.
pub(super) async fn judge(
    ctx: &AgentContext,
    thought: AnsweredTurn,
) -> Result<JudgedTurn, AgentError> {
    let AnsweredTurn { claimed, mut reply, asked } = thought;
    let fault = AnswerFault::from_reply(&reply, &claimed.offered);
    reply.calls.truncate(RECORDED_CALLS_MAX);
    let mut rulings = Vec::with_capacity(reply.calls.len());
    // What was approved is made in any turn.
    let mut closed = (claimed.wake.last && claimed.approved_call.is_none()).then_some(LAST_TURN);
    let mut attempts = attempts(&claimed.started.uses);
    for (index, call) in reply.calls.iter().enumerate() {
        if index == limit_of(ctx) {
            closed = closed.or(Some(TOO_MANY));
        }
        let ruling = match closed {
            Some(why) => CallRuling::settled(CallStatus::Skipped, format!("Not run: {why}")),
            None => rule(ctx, &claimed, attempts, (index, call)).await?,
        };
        if let CallRuling::Allowed { judged: DecisionDraft { decision, .. }, .. } = &ruling {
            attempts.add(&decision.intents);
        }
        if let CallRuling::Allowed { tool, .. } = &ruling {
            closed = closed.or(ends_turn(&claimed, tool));
        }
        rulings.push(ruling);
    }
    let Completion { text, usage, calls, .. } = reply;
    let answer = ModelAnswer { text, fault, usage, calls, asked };
    store_and_split(ctx, claimed, answer, rulings).await
}

fn limit_of(ctx: &AgentContext) -> usize {
    usize::try_from(ctx.settings.limits.calls_per_turn).unwrap_or(usize::MAX)
}

/// What the model answered, without the wire's particulars.
struct ModelAnswer {
    text: String,
    fault: Option<AnswerFault>,
    usage: automaton_core::record::Usage,
    calls: Vec<RawCall>,
    asked: Option<AskedAnswer>,
}

/// What became of one call.
enum CallRuling {
    Allowed { tool: ToolSpec, approved: Approved<Box<dyn PreparedCall>>, judged: DecisionDraft },
    Refused { tool: ToolSpec, judged: DecisionDraft },
    Settled { status: CallStatus, text: String },
}

/// A decision, and what it was made about and under.
struct DecisionDraft {
    decision: Decision,
    hash: ArgsHash,
    /// The arguments as JSON with sorted keys.
    arguments: String,
    under: DecisionContext,
}

impl CallRuling {
    const fn settled(status: CallStatus, text: String) -> Self {
        Self::Settled { status, text }
    }
}

/// How often what is limited was done of late, as it was when the turn was opened: nothing
/// else takes a place. What was not counted has no place left.
fn attempts(uses: &[u32]) -> Attempts {
    let mut counts = [u32::MAX; LIMITS.len()];
    counts.iter_mut().zip(uses).for_each(|(count, used)| *count = *used);
    Attempts::new(counts)
}

pub(super) fn counted(limit: &Limit) -> RateLimit {
    RateLimit { rule: limit.rule.to_owned(), max: limit.max, window: limit.window }
}

/// Returns why no later call of the turn runs after one of this tool, if it ends the turn.
fn ends_turn(claimed: &ClaimedTurn, tool: &ToolSpec) -> Option<&'static str> {
    claimed.tools.set.find(tool.name.as_str())?.profile().ends_turn
}

/// Checks, parses and judges one call, after so many of its kind.
async fn rule(
    ctx: &AgentContext,
    claimed: &ClaimedTurn,
    attempts: Attempts,
    (index, call): (usize, &RawCall),
) -> Result<CallRuling, AgentError> {
    let begun = ctx.deps.ids.now();
    let parsed = match claimed.tools.set.parse_call(&claimed.offered, call) {
        Ok(parsed) => parsed,
        Err(fault) => return Ok(CallRuling::settled(CallStatus::Invalid, fault.sentence)),
    };
    let spec = parsed.tool.spec();
    let hash = ArgsHash::of(&parsed.arguments);
    let intents = parsed.prepared.intents();
    let asked = (spec, &parsed.arguments, intents.as_slice());
    let facts = facts_of(ctx, claimed, attempts, asked).await?;
    let moment = RuleContext {
        tool: &spec.name,
        at: begun,
        tier: claimed.wake.tier,
        turn: claimed.wake.wake_turn,
        call: u32::try_from(index + 1).unwrap_or(u32::MAX),
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
    let made =
        |decision| DecisionDraft { decision, hash, arguments: canonical(&parsed.arguments), under };
    let tool = spec.clone();
    Ok(match verdict {
        Verdict::Allowed(approved, decision) => {
            CallRuling::Allowed { tool, approved, judged: made(decision) }
        }
        Verdict::Held(decision) | Verdict::Refused(decision) => {
            CallRuling::Refused { tool, judged: made(decision) }
        }
    })
}

/// Gathers what the rules may know of a call of a tool with these arguments and intents.
async fn facts_of(
    ctx: &AgentContext,
    claimed: &ClaimedTurn,
    attempts: Attempts,
    (spec, arguments, intents): (&ToolSpec, &Value, &[Intent]),
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
        secrets: secrets_in(arguments, &own),
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

/// Who has named what the intents are aimed at. What is in the configuration, the creator
/// has named.
async fn origins(
    ctx: &AgentContext,
    intents: &[Intent],
    others_wrote: bool,
) -> Result<Origins, AgentError> {
    let (configured, asked): (Vec<TargetValue>, Vec<TargetValue>) =
        intents.iter().flat_map(TargetValue::of).partition(|value| is_configured(ctx, value));
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

/// Whether the port that a call opens was opened before, at the same price and with the same
/// commands running beside the turns. Only calls that were allowed are on that record.
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

async fn store_and_split(
    ctx: &AgentContext,
    claimed: ClaimedTurn,
    answer: ModelAnswer,
    rulings: Vec<CallRuling>,
) -> Result<JudgedTurn, AgentError> {
    let turn = claimed.turn;
    let mut rows = Vec::with_capacity(rulings.len());
    let (mut allowed, mut settled, mut events) = (Vec::new(), Vec::new(), Vec::new());
    let mut summaries: Vec<(CallId, String)> = Vec::new();
    let mut approval = claimed.approved_call.as_ref().map(|approval| approval.id);
    let patience = AgentLimits::patience(ctx.settings.limits.answer_within, claimed.wake.creators);
    let expires_at = ctx.deps.ids.now().after(patience);
    for (place, (call, ruling)) in (1..).zip(answer.calls.into_iter().zip(rulings)) {
        let id = ctx.deps.ids.id();
        let row = CallRow { id, call: &call, approval: approval.take() };
        match ruling {
            CallRuling::Allowed { tool, approved, judged } => {
                events.push(made(turn, id, &tool.name, &judged.decision));
                rows.push(row.judged(&tool, &judged, None));
                let (tool, effect) = (tool.name, tool.effect);
                let arguments = call.arguments.clone();
                allowed.push(AllowedCall { id, place, tool, arguments, effect, approved });
            }
            CallRuling::Refused { tool, judged } => {
                events.push(made(turn, id, &tool.name, &judged.decision));
                let text = explain::to_model(&tool.name, &judged.decision);
                events.push(ended(turn, id, &call.tool, CallStatus::Refused, &text));
                let question = question(&call.tool, &judged, expires_at);
                if let Some(CallApprovalRequest { question, .. }) = &question {
                    summaries.push((id, question.summary.clone()));
                }
                rows.push(JudgedCall { question, ..row.judged(&tool, &judged, Some(&text)) });
                settled.push(row.settled(CallStatus::Refused, text));
            }
            CallRuling::Settled { status, text } => {
                events.push(ended(turn, id, &call.tool, status, &text));
                rows.push(row.unjudged(status, &text));
                settled.push(row.settled(status, text));
            }
        }
    }
    // The first one starts with its judgement: it is written before it runs, and once.
    if let Some(first) = allowed.first()
        && let Some(row) = rows.iter_mut().find(|row| row.id == first.id)
    {
        row.status = CallStatus::Started;
    }
    let (thought, fault, usage) = (answer.text, answer.fault, answer.usage);
    // What it hands over at a limit is no answer: that goes on, and with it what is open.
    let ends =
        rows.is_empty() && !thought.trim().is_empty() && fault.is_none() && !claimed.wake.last;
    // What it says now it may have from what it has read.
    let voice = ends.then(|| Label::Own.meet(claimed.label).meet(claimed.wake.heard));
    let (text, used) = (thought.clone(), usage.clone());
    let judgement = Judgement { turn, thought: text, voice, usage: used, calls: rows };
    let asked = ctx.deps.store.record_judgement(judgement, answer.asked).await?;
    let asked = asked.into_iter().filter_map(|asked| asked_event(asked, &mut summaries));
    events.into_iter().chain(asked).for_each(|event| ctx.deps.emit(event));
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
    refused: &SkippedCall,
) -> Result<(), AgentError> {
    let text = format!("The call that you approved was not made: {}", refused.text);
    let words = Labelled::new(Label::Own, "runtime", text);
    let message = ctx.deps.store.tell_creator(claimed.wake.session, words.clone()).await?;
    ctx.deps.emit(sent((message, words)));
    Ok(())
}

/// What is told of a question that is new.
fn asked_event(asked: AskedApproval, summaries: &mut Vec<(CallId, String)>) -> Option<Event> {
    let AskedApproval { call, approval } = asked;
    let place = summaries.iter().position(|(id, _)| *id == call)?;
    let (_, summary) = summaries.swap_remove(place);
    Some(Event::ApprovalAsked { approval, payment: None, call: Some(call), summary })
}

/// What the creator is asked about a call that needs the creator's word.
fn question(
    tool: &str,
    made: &DecisionDraft,
    expires_at: Timestamp,
) -> Option<CallApprovalRequest> {
    let DecisionDraft { decision, arguments, under, .. } = made;
    let question = ApprovalRequest {
        summary: format!("{tool} {}", result::cap(arguments, SUMMARY_CHARS_MAX)),
        code: decision.code.name().to_owned(),
        reason: decision.reason.to_string(),
        expires_at,
    };
    let label = Label::Own.meet(under.input).meet(under.heard);
    (decision.outcome == DecisionOutcome::Ask).then(|| CallApprovalRequest {
        question,
        arguments: arguments.clone(),
        label,
    })
}

/// The row of one call.
struct CallRow<'a> {
    id: CallId,
    call: &'a RawCall,
    /// The approval that it uses up.
    approval: Option<ApprovalId>,
}

impl CallRow<'_> {
    /// A judged call: planned when there is no refusal, else refused with it.
    fn judged(&self, tool: &ToolSpec, made: &DecisionDraft, refusal: Option<&str>) -> JudgedCall {
        let status = if refusal.is_some() { CallStatus::Refused } else { CallStatus::Planned };
        let decision = &made.decision;
        JudgedCall {
            args_hash: Some(made.hash),
            mutates: tool.effect,
            decision: Some(decision_row(tool, made)),
            intents: decision.intents.clone(),
            limits: match status {
                CallStatus::Planned => Limit::of(&decision.intents).map(counted).collect(),
                _ => Vec::new(),
            },
            ..self.row(status, refusal, decision.intents.clone())
        }
    }

    /// A call that never came before the policy.
    fn unjudged(&self, status: CallStatus, text: &str) -> JudgedCall {
        self.row(status, Some(text), Vec::new())
    }

    fn row(&self, status: CallStatus, result: Option<&str>, intents: Vec<Intent>) -> JudgedCall {
        JudgedCall {
            id: self.id,
            tool: self.call.tool.clone(),
            arguments: self.call.arguments.clone(),
            args_hash: None,
            mutates: Effect::Observes,
            status,
            result: result.map(|text| Labelled::new(Label::Own, "runtime", text)),
            decision: None,
            intents,
            limits: Vec::new(),
            question: None,
            approval: self.approval,
        }
    }

    fn settled(&self, status: CallStatus, text: String) -> SkippedCall {
        let (tool, arguments) = (self.call.tool.clone(), self.call.arguments.clone());
        SkippedCall { tool, arguments, status, text }
    }
}

fn decision_row(tool: &ToolSpec, made: &DecisionDraft) -> NewDecision {
    let DecisionDraft { decision, under, .. } = made;
    NewDecision {
        outcome: decision.outcome,
        code: decision.code.name().to_owned(),
        reason: decision.reason.to_string(),
        risk: tool.risk,
        rules_evaluated: decision.evaluated().map(str::to_owned).collect(),
        rules_triggered: decision.triggered().map(str::to_owned).collect(),
        under: *under,
    }
}

fn made(turn: TurnId, call: CallId, tool: &ToolName, decision: &Decision) -> Event {
    let outcome: DecisionOutcome = decision.outcome;
    let (code, reason) = (decision.code.name().to_owned(), decision.reason.to_string());
    Event::DecisionMade { turn, call, tool: tool.to_string(), outcome, code, reason }
}

fn ended(turn: TurnId, call: CallId, tool: &str, status: CallStatus, text: &str) -> Event {
    let result = Labelled::new(Label::Own, "runtime", text);
    let tool = tool.chars().take(64).collect();
    Event::CallFinished { turn, call, tool, status, result, duration_ms: 0 }
}
