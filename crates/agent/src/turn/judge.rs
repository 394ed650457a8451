//! Stage 4: every call is checked, judged and stored before any of them runs.
//!
//! A call that is malformed never becomes a default; it goes back to the model
//! as an error. Only the policy can approve, and only what it approved is kept
//! to run. All decisions and intended effects are stored in one transaction.

use automaton_core::event::Event;
use automaton_core::id::{CallId, TurnId};
use automaton_core::intent::Intent;
use automaton_core::record::{CallStatus, Outcome};
use automaton_core::tool::{ArgsHash, Effect, ToolName, ToolSpec};
use automaton_core::trust::{Label, Labelled};
use automaton_inference::RawCall;
use automaton_policy::{Approved, Decision, Facts, Verdict, explain, judge as judge_intents};
use automaton_store::{JudgedCall, Judgement, NewDecision};
use automaton_tools::{Prepared, list};

use super::Body;
use super::inbox::Claimed;
use super::inference::Thought;
use crate::error::AgentError;

/// The tool after which no later call of a turn runs.
const LAST_TOOL: &str = "sleep";

/// Calls of one answer that are recorded, run or not. More would only fill the
/// history with calls that never ran.
const RECORDED_CALLS_MAX: usize = 16;

/// Why a call after it was skipped.
const AFTER_LAST: &str = "Not run: you chose to sleep before it.";

/// Why a call beyond the limit was skipped.
const TOO_MANY: &str = "Not run: too many calls in one turn. Make it in the next turn.";

/// A call that may run.
pub(super) struct Allowed {
    pub(super) id: CallId,
    pub(super) tool: ToolName,
    pub(super) effect: Effect,
    pub(super) arguments: String,
    pub(super) approved: Approved<Box<dyn Prepared>>,
}

/// A call that will not run, as the next prompt will tell it.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) tool: String,
    pub(super) arguments: String,
    pub(super) status: CallStatus,
    pub(super) text: String,
}

/// A turn whose calls are judged and stored.
pub(super) struct Judged {
    pub(super) claimed: Claimed,
    pub(super) thought: String,
    pub(super) cut: bool,
    pub(super) usage: automaton_core::record::Usage,
    pub(super) allowed: Vec<Allowed>,
    pub(super) settled: Vec<Settled>,
}

/// Judges the calls of a thought and stores what comes of it.
pub(super) async fn judge(body: &Body, thought: Thought) -> Result<Judged, AgentError> {
    use automaton_inference::Finish;
    let Thought { claimed, mut reply } = thought;
    reply.calls.truncate(RECORDED_CALLS_MAX);
    let cut = matches!(reply.finish, Finish::Length | Finish::Repetition);
    let mut rulings = Vec::with_capacity(reply.calls.len());
    let mut closed: Option<&'static str> = None;
    for (index, call) in reply.calls.iter().enumerate() {
        if index == limit_of(body) {
            closed = closed.or(Some(TOO_MANY));
        }
        let ruling = match closed {
            Some(why) => Ruling::settled(CallStatus::Skipped, why.to_owned()),
            None => rule(body, &claimed, call),
        };
        if call.tool == LAST_TOOL && matches!(ruling, Ruling::Allowed { .. }) {
            closed = Some(AFTER_LAST);
        }
        rulings.push(ruling);
    }
    let answer = Answer { text: reply.text, cut, usage: reply.usage, calls: reply.calls };
    store_and_split(body, claimed, answer, rulings).await
}

fn limit_of(body: &Body) -> usize {
    usize::try_from(body.settings.limits.calls_per_turn).unwrap_or(usize::MAX)
}

/// What the model answered, without the wire's particulars.
struct Answer {
    text: String,
    cut: bool,
    usage: automaton_core::record::Usage,
    calls: Vec<RawCall>,
}

/// What became of one call.
enum Ruling {
    Allowed {
        tool: ToolSpec,
        approved: Approved<Box<dyn Prepared>>,
        decision: Decision,
        hash: ArgsHash,
    },
    Refused {
        tool: ToolSpec,
        decision: Decision,
        hash: ArgsHash,
    },
    Settled {
        status: CallStatus,
        text: String,
    },
}

impl Ruling {
    const fn settled(status: CallStatus, text: String) -> Self {
        Self::Settled { status, text }
    }
}

/// Checks, parses and judges one call.
fn rule(body: &Body, claimed: &Claimed, call: &RawCall) -> Ruling {
    let invalid = |sentence: String| Ruling::settled(CallStatus::Invalid, sentence);
    let checked = match body.checker.check(call) {
        Ok(checked) => checked,
        Err(fault) => return invalid(fault.sentence),
    };
    let spec = body.tools.iter().find(|spec| spec.name == checked.tool);
    let (Some(spec), Some(tool)) = (spec, list::find(checked.tool.as_str())) else {
        return invalid(format!("There is no tool '{}'.", checked.tool));
    };
    let prepared = match tool.parse(&checked.arguments) {
        Ok(prepared) => prepared,
        Err(error) => return invalid(error.to_string()),
    };
    let hash = ArgsHash::of(&checked.arguments);
    // An address that cannot be read leaves the creator reachable as `creator` only.
    let creator = body.settings.creator_address.as_deref().and_then(|text| text.parse().ok());
    let treasury = body.deps.treasury.as_ref();
    let facts = Facts {
        input: claimed.label,
        heard: claimed.wake.heard,
        risk: spec.risk,
        creator,
        paid_hosts: treasury.map(|treasury| treasury.paid_hosts()).unwrap_or_default(),
    };
    match judge_intents(prepared, &facts) {
        Verdict::Allowed(approved, decision) => {
            Ruling::Allowed { tool: spec.clone(), approved, decision, hash }
        }
        Verdict::Held(decision) | Verdict::Refused(decision) => {
            Ruling::Refused { tool: spec.clone(), decision, hash }
        }
    }
}

async fn store_and_split(
    body: &Body,
    claimed: Claimed,
    answer: Answer,
    rulings: Vec<Ruling>,
) -> Result<Judged, AgentError> {
    let turn = claimed.turn;
    let mut rows = Vec::with_capacity(rulings.len());
    let (mut allowed, mut settled, mut events) = (Vec::new(), Vec::new(), Vec::new());
    for (call, ruling) in answer.calls.into_iter().zip(rulings) {
        let id = body.deps.mint.id();
        let row = RowOf { id, call: &call };
        match ruling {
            Ruling::Allowed { tool, approved, decision, hash } => {
                events.push(made(turn, id, &tool.name, &decision));
                rows.push(row.judged(&tool, hash, &decision, None));
                let (effect, arguments) = (tool.effect, call.arguments.clone());
                allowed.push(Allowed { id, tool: tool.name, effect, arguments, approved });
            }
            Ruling::Refused { tool, decision, hash } => {
                events.push(made(turn, id, &tool.name, &decision));
                let text = explain::to_model(&tool.name, &decision);
                events.push(ended(turn, id, &call.tool, CallStatus::Refused, &text));
                rows.push(row.judged(&tool, hash, &decision, Some(&text)));
                settled.push(row.settled(CallStatus::Refused, text));
            }
            Ruling::Settled { status, text } => {
                events.push(ended(turn, id, &call.tool, status, &text));
                rows.push(row.unjudged(status, &text));
                settled.push(row.settled(status, text));
            }
        }
    }
    let judgement =
        Judgement { turn, thought: answer.text.clone(), usage: answer.usage.clone(), calls: rows };
    body.deps.store.record_judgement(judgement).await?;
    events.into_iter().for_each(|event| body.deps.emit(event));
    let (thought, cut, usage) = (answer.text, answer.cut, answer.usage);
    Ok(Judged { claimed, thought, cut, usage, allowed, settled })
}

/// The row of one call.
struct RowOf<'a> {
    id: CallId,
    call: &'a RawCall,
}

impl RowOf<'_> {
    /// A judged call: planned when there is no refusal, else refused with it.
    fn judged(
        &self,
        tool: &ToolSpec,
        hash: ArgsHash,
        decision: &Decision,
        refusal: Option<&str>,
    ) -> JudgedCall {
        let status = if refusal.is_some() { CallStatus::Refused } else { CallStatus::Planned };
        JudgedCall {
            args_hash: Some(hash),
            mutates: tool.effect,
            decision: Some(decision_row(tool, decision)),
            intents: decision.intents.clone(),
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
            provider_id: self.call.provider_id.clone(),
            tool: self.call.tool.clone(),
            arguments: self.call.arguments.clone(),
            args_hash: None,
            mutates: Effect::Observes,
            status,
            result: result.map(|text| Labelled::new(Label::Own, "runtime", text)),
            decision: None,
            intents,
        }
    }

    fn settled(&self, status: CallStatus, text: String) -> Settled {
        let (tool, arguments) = (self.call.tool.clone(), self.call.arguments.clone());
        Settled { tool, arguments, status, text }
    }
}

fn decision_row(tool: &ToolSpec, decision: &Decision) -> NewDecision {
    NewDecision {
        outcome: decision.outcome,
        code: decision.code.name().to_owned(),
        reason: decision.reason.clone(),
        risk: tool.risk,
        rules_evaluated: decision.rules_evaluated.iter().map(ToString::to_string).collect(),
        rules_triggered: decision.rules_triggered.iter().map(ToString::to_string).collect(),
    }
}

fn made(turn: TurnId, call: CallId, tool: &ToolName, decision: &Decision) -> Event {
    let outcome: Outcome = decision.outcome;
    let (code, reason) = (decision.code.name().to_owned(), decision.reason.clone());
    Event::DecisionMade { turn, call, tool: tool.to_string(), outcome, code, reason }
}

fn ended(turn: TurnId, call: CallId, tool: &str, status: CallStatus, text: &str) -> Event {
    let result = Labelled::new(Label::Own, "runtime", text);
    let tool = tool.chars().take(64).collect();
    Event::CallFinished { turn, call, tool, status, result, duration_ms: 0 }
}
