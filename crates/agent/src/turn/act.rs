//! Stage 5: the approved calls run, in order, one at a time.
//!
//! Each is marked as started before it runs: the first one with its judgement, another one
//! with the outcome of the one before. The last outcome is stored with the commit of the
//! turn, so that after a crash only the one that was running is unknown. A
//! panic inside a tool is caught here and nowhere below. After a failure that is
//! fatal to the turn, or when the process should end, the rest is not started.

use std::panic::AssertUnwindSafe;

use automaton_core::event::Event;
use automaton_core::faults::FaultPoint;
use automaton_core::id::{CallId, TurnId};
use automaton_core::record::{CallStatus, FinishedCall, SleepRequest};
use automaton_core::trust::{Label, Labelled};
use automaton_sandbox::ExitStatus;
use automaton_store::JudgedCall;
use automaton_tools::context::{CallProvenance, ToolContext};
use automaton_tools::result::{cap, shorten};
use automaton_tools::{ToolError, ToolOutput, TurnContinuation};
use futures_util::FutureExt;
use tracing::{Instrument as _, debug_span};

use super::AgentContext;
use super::finished::{SHOWN_CHARS_MAX, finished_event};
use super::inbox::suspect;
use super::judge::{CallRuling, JudgedTurn};
use crate::error::AgentError;
use crate::prompt::result_room;

/// A turn whose calls have all come to an end.
pub(super) struct ExecutedTurn {
    pub(super) judged: JudgedTurn,
    /// The calls that were allowed, as they ended, in order.
    pub(super) ended: Vec<FinishedCall>,
    /// The number of these ends that are stored.
    pub(super) stored: usize,
}

impl ExecutedTurn {
    /// Returns the ends that are not stored yet.
    pub(super) fn unstored(&self) -> &[FinishedCall] {
        self.ended.get(self.stored..).unwrap_or_default()
    }

    /// Returns the first sleep that a call asks for.
    pub(super) fn sleep(&self) -> Option<&SleepRequest> {
        self.ended.iter().find_map(|call| call.sleep.as_ref())
    }
}

/// Runs the approved calls.
pub(super) async fn act(
    ctx: &AgentContext,
    mut judged: JudgedTurn,
) -> Result<ExecutedTurn, AgentError> {
    let allowed = std::mem::take(&mut judged.allowed);
    let mut ended: Vec<FinishedCall> = Vec::with_capacity(allowed.len());
    let mut stored = 0;
    let mut halted: Option<&'static str> = None;
    let model = ctx.deps.model(judged.claimed.wake.model);
    let window = ctx.history_cache.lock().await.window(&model);
    let room = result_room(window, allowed.len());
    for (nth, call) in allowed.into_iter().enumerate() {
        if nth > 0 && *ctx.interrupt.borrow() {
            halted = halted.or(Some("Not started: you were stopped before its place came."));
        }
        let finished = match halted {
            Some(why) => leave(call, why),
            None => {
                // The first one started with its judgement.
                if nth == 0 {
                    ctx.deps.faults.reach(FaultPoint::CallStarted);
                } else {
                    store_ends(ctx, judged.claimed.turn, &ended[stored..], &call).await?;
                    stored = ended.len();
                }
                run(ctx, &judged, call, room).await
            }
        };
        if finished.fatal {
            halted = Some("Not started: an earlier call of this turn failed inside the runtime.");
        }
        ended.push(finished);
    }
    Ok(ExecutedTurn { judged, ended, stored })
}

/// Stores how calls ended, and that the next one starts.
async fn store_ends(
    ctx: &AgentContext,
    turn: TurnId,
    ends: &[FinishedCall],
    next: &CallRuling,
) -> Result<(), AgentError> {
    let starts = (next.judged.id, next.judged.mutates);
    ctx.deps.store.step_calls(ends.to_vec(), Some(starts)).await?;
    let events = ends.iter().filter_map(|call| finished_event(turn, call));
    events.for_each(|event| ctx.deps.emit(event));
    Ok(())
}

/// Runs one call that has started, whose result may have so many tokens.
async fn run(ctx: &AgentContext, judged: &JudgedTurn, call: CallRuling, room: u32) -> FinishedCall {
    let CallRuling { place, tool, judged: JudgedCall { id, arguments, .. }, approved } = call;
    let turn = judged.claimed.turn;
    let deps = &ctx.deps;
    let begun = FinishedCall {
        place,
        tool,
        arguments,
        ..FinishedCall::by_runtime(id, CallStatus::NotStarted, "")
    };
    let Some(approved) = approved else { return begun };
    deps.emit(Event::CallStarted {
        turn,
        call: id,
        tool: begun.tool.clone(),
        arguments: cap(&begun.arguments, SHOWN_CHARS_MAX),
    });
    let started = deps.ids.now();
    let (prepared, permit) = approved.open();
    let context = tool_context(ctx, judged, id, place, room);
    let span = debug_span!("tool", tool = %begun.tool, call = %id);
    let ran =
        AssertUnwindSafe(prepared.run(permit, &context)).catch_unwind().instrument(span).await;
    deps.faults.reach(FaultPoint::CallRan);
    let mut finished = with_output(begun, ran);
    finished.result.text = shorten(&finished.result.text, room);
    finished.duration = deps.ids.now().since(started);
    suspect(ctx, turn, &finished.result);
    finished
}

/// Returns the context of a tool for one call.
fn tool_context<'a>(
    ctx: &'a AgentContext,
    judged: &JudgedTurn,
    call: CallId,
    place: u32,
    room: u32,
) -> ToolContext<'a> {
    let wake = &judged.claimed.wake;
    let input = judged.claimed.label;
    ToolContext {
        call,
        now: ctx.deps.ids.now(),
        room,
        provenance: CallProvenance {
            call,
            turn: judged.claimed.turn,
            input,
            heard: wake.heard,
            approval: judged.claimed.approved_call.as_ref().map(|approval| approval.id),
            tier: wake.tier,
            turn_of_wake: wake.wake_turn,
            place,
        },
        // What it says now it may have from what it has just read.
        voice: Label::Own.meet(input).meet(wake.heard),
        workspace: &ctx.handles.workspace,
        memory: ctx.handles.memory.as_ref(),
        soul: ctx.handles.soul.as_ref(),
        mailbox: &ctx.handles.mailbox,
        status: &ctx.handles.life,
        treasury: &ctx.handles.treasury,
        schedule: &ctx.handles.pulse,
        survival: &ctx.handles.survival,
        machines: &ctx.handles.machines,
        models: &ctx.handles.models,
    }
}

/// Leaves a call that will not be started.
fn leave(call: CallRuling, why: &str) -> FinishedCall {
    let CallRuling { place, tool, judged: JudgedCall { id, arguments, .. }, .. } = call;
    let left = FinishedCall::by_runtime(id, CallStatus::NotStarted, why);
    FinishedCall { place, tool, arguments, ..left }
}

/// Returns a call with what came of its run.
fn with_output(
    call: FinishedCall,
    ran: Result<Result<ToolOutput, ToolError>, Box<dyn std::any::Any + Send>>,
) -> FinishedCall {
    match ran {
        Ok(Ok(ToolOutput { text, after, exit })) => FinishedCall {
            status: CallStatus::Done,
            result: text,
            exit_code: exit.map(ExitStatus::code),
            sleep: match after {
                TurnContinuation::Continue => None,
                TurnContinuation::Sleep(wish) => Some(wish),
            },
            ..call
        },
        Ok(Err(error)) => FinishedCall {
            status: CallStatus::Failed,
            result: error.to_model(),
            fatal: error.is_fatal(),
            ..call
        },
        Err(_panic) => {
            let text = "The tool broke down inside the runtime. It may have taken effect.";
            let result = Labelled::new(Label::Own, "runtime", text);
            FinishedCall { status: CallStatus::Failed, result, fatal: true, ..call }
        }
    }
}
