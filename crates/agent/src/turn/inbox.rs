//! Stage 1: a turn is opened and claims the messages that it will answer.
//!
//! What a turn answers is stored with the turn, so that history can show it for
//! ever. What the creator approved meanwhile is done first, in a turn of its own. A message must never be claimed without being stored as an input.

use automaton_core::event::Event;
use automaton_core::id::{MessageId, TurnId};
use automaton_core::record::TurnInput;
use automaton_core::trust::{Label, Labelled};
use automaton_policy::guard::GuardAction;
use automaton_store::{Approval, ClaimOptions};

use super::{AgentContext, TurnError, WakeContext};
use crate::prompt::input_label;
use crate::survival;

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
    /// The oldest of the messages that it answers.
    pub(super) first: Option<MessageId>,
    /// A call that the creator approved; the turn makes it, and nothing else.
    pub(super) approved_call: Option<Approval>,
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
) -> Result<ClaimedTurn, TurnError> {
    let approval = ctx.deps.store.approved_call().await?;
    let only = survival::answers_only(&ctx.deps).await?;
    // A message is not answered by a turn in which no model reads it.
    let most = if approval.is_some() { 0 } else { wake.claim.most() };
    let claims = ClaimOptions { most, only };
    let opened = ctx.deps.store.open_turn_of(wake.session, wake.told.clone(), claims).await?;
    let (turn, seq, session) = (opened.id, opened.seq, wake.session);
    ctx.deps.emit(Event::TurnStarted { turn, seq, session });
    let first = opened.messages.first().map(|message| message.id);
    let messages = opened.messages.into_iter().map(|message| TurnInput {
        said: message.body.into_labelled(),
        message: Some(message.id),
        file: message.file,
    });
    let told = wake.told.iter().cloned().map(TurnInput::from);
    let inputs: Vec<TurnInput> = told.chain(messages).collect();
    inputs.iter().for_each(|input| suspect(ctx, turn, &input.said));
    let label = input_label(&inputs);
    // What is approved is still the wish of whoever caused it.
    let label = approval.as_ref().map_or(label, |approval| label.meet(approval.summary.label));
    wake.heard = wake.heard.meet(label);
    Ok(ClaimedTurn { turn, seq, wake, inputs, label, first, approved_call: approval })
}
