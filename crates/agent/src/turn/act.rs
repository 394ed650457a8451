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
use automaton_core::id::CallId;
use automaton_core::record::CallStatus;
use automaton_core::time::Span;
use automaton_core::tool::Effect;
use automaton_core::trust::{Label, Labelled};
use automaton_sandbox::ExitStatus;
use automaton_store::CallEnd;
use automaton_tools::context::{CallProvenance, ToolContext};
use automaton_tools::result::{cap, shorten};
use automaton_tools::{ToolError, ToolOutput, TurnContinuation};
use futures_util::FutureExt;
use tracing::{Instrument as _, debug_span};

use super::AgentContext;
use super::inbox::suspect;
use super::judge::{AllowedCall, JudgedTurn};
use crate::error::AgentError;
use crate::prompt::result_room;

/// Characters of arguments and results that events show.
const SHOWN_CHARS_MAX: usize = 2000;

/// A call that has come to its end.
#[derive(Debug)]
pub(super) struct CallResult {
    pub(super) tool: String,
    pub(super) arguments: String,
    pub(super) status: CallStatus,
    pub(super) result: Labelled,
}

/// A turn whose calls have all come to an end.
pub(super) struct ExecutedTurn {
    pub(super) judged: JudgedTurn,
    pub(super) ended: Vec<CallResult>,
    /// The ends that are not stored.
    pub(super) unstored: Vec<EndedCall>,
    pub(super) sleep: Option<(Span, Option<String>)>,
}

/// Runs the approved calls.
pub(super) async fn act(
    ctx: &AgentContext,
    mut judged: JudgedTurn,
) -> Result<ExecutedTurn, AgentError> {
    let mut ended = Vec::with_capacity(judged.allowed.len());
    let mut unstored: Vec<EndedCall> = Vec::new();
    let mut sleep = None;
    let mut halted: Option<&'static str> = None;
    let model = ctx.deps.model(judged.claimed.wake.model);
    let window = ctx.history_cache.lock().await.window(&model);
    let room = result_room(window, judged.allowed.len());
    for (place, call) in std::mem::take(&mut judged.allowed).into_iter().enumerate() {
        if place > 0 && *ctx.interrupt.borrow() {
            halted = halted.or(Some("Not started: you were stopped before its place came."));
        }
        let outcome = match halted {
            Some(why) => leave(call, why),
            None => {
                // The first one started with its judgement.
                match place {
                    0 => ctx.deps.faults.reach(FaultPoint::CallStarted),
                    _ => {
                        store_ends(ctx, std::mem::take(&mut unstored), (call.id, call.effect))
                            .await?
                    }
                }
                run(ctx, &judged, call, room).await
            }
        };
        if outcome.fatal {
            halted = Some("Not started: an earlier call of this turn failed inside the runtime.");
        }
        sleep = sleep.or(outcome.sleep);
        ended.push(outcome.ended);
        unstored.push(outcome.end);
    }
    Ok(ExecutedTurn { judged, ended, unstored, sleep })
}

/// The end of a call, for the record and for whoever watches once that has it.
pub(super) struct EndedCall {
    pub(super) end: CallEnd,
    pub(super) event: Option<Event>,
}

/// Stores how calls ended, and that the next one starts.
async fn store_ends(
    ctx: &AgentContext,
    ended: Vec<EndedCall>,
    next: (CallId, Effect),
) -> Result<(), AgentError> {
    let (ends, events): (Vec<_>, Vec<_>) =
        ended.into_iter().map(|ended| (ended.end, ended.event)).unzip();
    ctx.deps.store.step_calls(ends, Some(next)).await?;
    events.into_iter().flatten().for_each(|event| ctx.deps.emit(event));
    Ok(())
}

/// What came of one call.
struct CallExecution {
    ended: CallResult,
    end: EndedCall,
    sleep: Option<(Span, Option<String>)>,
    fatal: bool,
}

/// Runs one call that has started, whose result may have so many tokens.
async fn run(
    ctx: &AgentContext,
    judged: &JudgedTurn,
    call: AllowedCall,
    room: u32,
) -> CallExecution {
    let AllowedCall { id, place, tool, arguments, approved, .. } = call;
    let (turn, deps) = (judged.claimed.turn, &ctx.deps);
    let (name, shown) = (tool.to_string(), cap(&arguments, SHOWN_CHARS_MAX));
    deps.emit(Event::CallStarted { turn, call: id, tool: name.clone(), arguments: shown });
    let started = deps.ids.now();
    let (prepared, permit) = approved.open();
    let context = tool_context(ctx, judged, id, place, room);
    let span = debug_span!("tool", tool = %name, call = %id);
    let ran =
        AssertUnwindSafe(prepared.run(permit, &context)).catch_unwind().instrument(span).await;
    deps.faults.reach(FaultPoint::CallRan);
    let CallResolution { status, mut result, sleep, exit_code, fatal } = told(ran);
    result.text = shorten(&result.text, room);
    let duration = deps.ids.now().since(started);
    suspect(ctx, turn, &result);
    let shown = Labelled { text: cap(&result.text, SHOWN_CHARS_MAX), ..result.clone() };
    let duration_ms = duration.as_millis();
    let event = Some(Event::CallFinished {
        turn,
        call: id,
        tool: name.clone(),
        status,
        result: shown,
        duration_ms,
    });
    let end = EndedCall {
        end: CallEnd { call: id, status, result: result.clone(), duration, exit_code },
        event,
    };
    CallExecution { ended: CallResult { tool: name, arguments, status, result }, end, sleep, fatal }
}

/// What a tool may use for one call.
fn tool_context<'a>(
    ctx: &'a AgentContext,
    judged: &JudgedTurn,
    call: CallId,
    place: u32,
    room: u32,
) -> ToolContext<'a> {
    let (wake, input) = (&judged.claimed.wake, judged.claimed.label);
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
fn leave(call: AllowedCall, why: &str) -> CallExecution {
    let (status, tool) = (CallStatus::NotStarted, call.tool.to_string());
    let result = Labelled::new(Label::Own, "runtime", why);
    let end = CallEnd {
        call: call.id,
        status,
        result: result.clone(),
        duration: Span::ZERO,
        exit_code: None,
    };
    let ended = CallResult { tool, arguments: call.arguments, status, result };
    CallExecution { ended, end: EndedCall { end, event: None }, sleep: None, fatal: false }
}

/// What the record says of a run.
struct CallResolution {
    status: CallStatus,
    result: Labelled,
    sleep: Option<(Span, Option<String>)>,
    exit_code: Option<i32>,
    fatal: bool,
}

fn told(
    ran: Result<Result<ToolOutput, ToolError>, Box<dyn std::any::Any + Send>>,
) -> CallResolution {
    match ran {
        Ok(Ok(ToolOutput { text, after, exit })) => {
            let sleep = match after {
                TurnContinuation::Continue => None,
                TurnContinuation::Sleep { span, note } => Some((span, note)),
            };
            let exit_code = exit.map(ExitStatus::code);
            CallResolution {
                status: CallStatus::Done,
                result: text,
                sleep,
                exit_code,
                fatal: false,
            }
        }
        Ok(Err(error)) => {
            let (fatal, result) = (error.is_fatal(), error.to_model());
            CallResolution {
                status: CallStatus::Failed,
                result,
                sleep: None,
                exit_code: None,
                fatal,
            }
        }
        Err(_panic) => {
            let text = "The tool broke down inside the runtime. It may have taken effect.";
            let result = Labelled::new(Label::Own, "runtime", text);
            CallResolution {
                status: CallStatus::Failed,
                result,
                sleep: None,
                exit_code: None,
                fatal: true,
            }
        }
    }
}
