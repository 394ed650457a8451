//! Stage 1: a turn is opened and claims the messages that it will answer.
//!
//! What a turn answers is stored with the turn, so that history can show it for
//! ever. What the creator approved meanwhile is done first, in a turn of its own. A message must never be claimed without being stored as an input.

use std::sync::Arc;

use automaton_core::event::Event;
use automaton_core::id::{MessageId, TurnId};
use automaton_core::money::Microcents;
use automaton_core::record::TurnInput;
use automaton_core::tool::{ToolName, ToolSpec};
use automaton_core::trust::{Label, Labelled};
use automaton_memory::shown::ShownMemory;
use automaton_policy::guard::GuardAction;
use automaton_policy::rates::LIMITS;
use automaton_store::{Approval, ClaimOptions, StartedTurn, TurnRequest};

use super::judge::counted;
use super::{AgentContext, WakeContext};
use crate::metered::NotAnswered;
use crate::prompt::{self, input_label};
use crate::survival;
use crate::toolbox::TurnTools;

/// Bytes of a text that are looked at: more than a message or a result may have.
const SCANNED_BYTES_MAX: usize = 1 << 20;

/// A turn with its inputs.
#[derive(Debug)]
pub(super) struct ClaimedTurn {
    pub(super) turn: TurnId,
    pub(super) seq: u64,
    pub(super) wake: WakeContext,
    /// Everything that the turn answers, with its origin.
    pub(super) inputs: Vec<TurnInput>,
    /// The least trusted label of all inputs.
    pub(super) label: Label,
    /// True if it continues with a message of the creator in this wake that nobody has answered.
    pub(super) creator_waits: bool,
    /// The oldest of the messages that it answers.
    pub(super) first: Option<MessageId>,
    /// A call that the creator approved; the turn makes it, and nothing else.
    pub(super) approved_call: Option<Approval>,
    /// Data that was read when it was opened.
    pub(super) started: StartedTurn,
    /// Memories for the prompt, best first, once they were selected.
    pub(super) found: Vec<ShownMemory>,
    /// Content of its worklog, if the turn shows it.
    pub(super) worklog: Option<Labelled>,
    /// Soft limit for the cost of an answer, by the rule of its tier.
    pub(super) per_call: Option<Microcents>,
    /// The tools that there were when it began.
    pub(super) tools: TurnTools,
    /// The tools that may be called.
    pub(super) offered: Arc<[ToolSpec]>,
    /// Those of them that a weak model is not offered this time.
    pub(super) left_out: Vec<ToolName>,
}

/// Tells when a text of a peer or of the net looks like an attempt to steer its reader.
pub(super) fn suspect(ctx: &AgentContext, turn: TurnId, text: &Labelled) {
    if text.label <= Label::Tool {
        return;
    }
    let report = ctx.guard.scan(&text.text, text.label.into(), SCANNED_BYTES_MAX);
    if report.action == GuardAction::Allow {
        return;
    }
    let found = report.checks.iter().filter(|found| found.detected);
    ctx.deps.emit(Event::TextSuspected {
        turn,
        label: text.label,
        source: text.source.clone(),
        level: report.level.name().to_owned(),
        checks: found.map(|found| found.check.name().to_owned()).collect(),
        withheld: report.action == GuardAction::Withhold,
    });
}

/// Opens the turn.
pub(super) async fn claim(
    ctx: &AgentContext,
    mut wake: WakeContext,
) -> Result<ClaimedTurn, NotAnswered> {
    let only = survival::answers_only(&ctx.deps, &wake.vitals);
    let request = TurnRequest {
        session: wake.session,
        told: wake.told.clone(),
        claims: ClaimOptions { most: wake.claim.most(), only },
        history_from: ctx.history_cache.lock().await.next(),
        turns_max: prompt::TURNS_MAX,
        recall: super::context::recall_for,
        recalled: ctx.handles.memory.recalled(),
        limits: LIMITS.iter().map(counted).collect(),
    };
    let mut started = ctx.deps.store.start_turn(request).await?;
    ctx.handles.memory.add_similar(&mut started.recall).await?;
    let turn = started.id;
    let seq = started.seq;
    let session = wake.session;
    ctx.deps.emit(Event::TurnStarted { turn, seq, session });
    let inputs = std::mem::take(&mut started.inputs);
    let first = started.first;
    let approval = started.approved.take();
    inputs.iter().for_each(|input| suspect(ctx, turn, &input.said));
    let label = input_label(&inputs);
    // What is approved is still the wish of whoever caused it.
    let label = approval.as_ref().map_or(label, |approval| label.meet(approval.summary.label));
    wake.heard = wake.heard.meet(label);
    let creator_waits = wake.creators && !started.open.is_empty();
    let found = Vec::new();
    let left_out = Vec::new();
    let is_told = wake.wake_turn == 1 || !inputs.is_empty();
    let worklog = if is_told { ctx.handles.workspace.worklog().await? } else { None };
    let tools = ctx.tools.current();
    // An approved call may be of a family of tools that the model had chosen.
    let usual = ctx.deps.providers.usual();
    let usual = usual.provider.model();
    let offered = match approval.is_some() && (usual.weak || usual.compact) {
        true => tools.set.specs().into(),
        false => Arc::clone(&tools.usual),
    };
    Ok(ClaimedTurn {
        found,
        worklog,
        per_call: None,
        tools,
        offered,
        left_out,
        turn,
        seq,
        wake,
        inputs,
        label,
        creator_waits,
        first,
        approved_call: approval,
        started,
    })
}
